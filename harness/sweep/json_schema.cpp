#include "harness/sweep/json_schema.h"

#include <valijson/adapters/nlohmann_json_adapter.hpp>
#include <valijson/schema.hpp>
#include <valijson/schema_parser.hpp>
#include <valijson/validation_results.hpp>
#include <valijson/validator.hpp>

#include "harness/base/check.h"
#include "harness/base/status.h"
#include "harness/sweep/sweep_schema_text.h"

namespace kvlab {
namespace {

// "<root>[methods][0]" as users write paths: "methods[0]".
std::string readable_path(const std::string& context) {
  std::string path;
  for (size_t i = context.find('['); i != std::string::npos && i < context.size();) {
    const size_t close = context.find(']', i);
    if (close == std::string::npos) {
      break;
    }
    const std::string part = context.substr(i + 1, close - i - 1);
    const bool is_index =
        !part.empty() && part.find_first_not_of("0123456789") == std::string::npos;
    if (is_index) {
      path += "[" + part + "]";
    } else {
      path += (path.empty() ? "" : ".") + part;
    }
    i = context.find('[', close);
  }
  return path.empty() ? "the file" : path;
}

}  // namespace

absl::Status check_schema(const Json& value, const Json& schema, std::string_view origin) {
  valijson::ValidationResults results;
  try {
    valijson::Schema compiled;
    valijson::SchemaParser parser;
    const valijson::adapters::NlohmannJsonAdapter schema_adapter(schema);
    parser.populateSchema(schema_adapter, compiled);
    valijson::Validator validator(valijson::Validator::kStrongTypes);
    const valijson::adapters::NlohmannJsonAdapter value_adapter(value);
    if (validator.validate(compiled, value_adapter, &results)) {
      return absl::OkStatus();
    }
  } catch (const std::exception& error) {
    return invalid_argument("{}: cannot be checked: {}", origin, error.what());
  }
  // valijson reports the innermost cause first.
  std::string text;
  valijson::ValidationResults::Error error;
  while (results.popError(error)) {
    std::string context;
    for (const std::string& part : error.context) {
      context += part;
    }
    const std::string line =
        fmt::format("\n  at {}: {}", readable_path(context), error.description);
    if (text.find(line) == std::string::npos) {
      text += line;
    }
  }
  return invalid_argument("{}: not a valid file:{}", origin, text);
}

const Json& sweep_schema() {
  static const Json* const schema = [] {
    auto parsed = parse_json(kSweepSchemaText, "sweep.schema.json");
    KVLAB_CHECK(parsed.ok());
    return new Json(std::move(parsed).value());
  }();
  return *schema;
}

}  // namespace kvlab
