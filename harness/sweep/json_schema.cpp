#include "harness/sweep/json_schema.h"

#include <fmt/ranges.h>

#include <valijson/adapters/nlohmann_json_adapter.hpp>
#include <valijson/schema.hpp>
#include <valijson/schema_parser.hpp>
#include <valijson/validation_results.hpp>
#include <valijson/validator.hpp>

#include "harness/base/check.h"
#include "harness/base/status.h"
#include "harness/sweep/schema_message.h"
#include "harness/sweep/sweep_schema_text.h"

namespace kvlab {
namespace {

// {"<root>", "[methods]", "[0]"} as the place {"methods", "0"}.
JsonPlace place_of(const std::vector<std::string>& context) {
  JsonPlace place;
  for (size_t i = 1; i < context.size(); ++i) {
    place.push_back(context[i].substr(1, context[i].size() - 2));
  }
  return place;
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
  std::vector<JsonPlace> places;
  for (const auto& error : results) {
    places.push_back(place_of(error.context));
  }
  const std::vector<std::string> complaints = schema_complaints(value, schema, places);
  if (complaints.empty()) {
    return invalid_argument("{}: not a valid file: {}", origin, results.begin()->description);
  }
  return invalid_argument("{}: {}{}", origin, complaints.size() > 1 ? "\n  " : "",
                          fmt::join(complaints, "\n  "));
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
