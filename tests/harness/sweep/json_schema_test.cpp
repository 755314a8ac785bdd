#include "harness/sweep/json_schema.h"

#include <gmock/gmock.h>

#include "harness/base/status.h"

namespace kvlab {
namespace {

struct Slip {
  const char* name;
  const char* pointer;  // what is changed in a sound sweep
  const char* value;
  const char* message;
};

class SweepSchema : public ::testing::TestWithParam<Slip> {
 protected:
  Json sweep_ = {{"model", "some-model"},
                 {"benchmarks", {{{"name", "ruler"}}}},
                 {"methods", {"snapkv", {{"name", "laq"}}}},
                 {"budgets", {64}}};
};

TEST_F(SweepSchema, ASoundSweepPasses) {
  EXPECT_TRUE(check_schema(sweep_, sweep_schema(), "sweep.json").ok());
}

// One line, whatever alternatives the schema has there.
TEST_P(SweepSchema, ASlipIsNamedWithWhatIsAllowedInItsPlace) {
  sweep_[Json::json_pointer(GetParam().pointer)] = Json::parse(GetParam().value);
  EXPECT_EQ(message_of(check_schema(sweep_, sweep_schema(), "sweep.json")),
            std::string("sweep.json: ") + GetParam().message);
}

INSTANTIATE_TEST_SUITE_P(
    Slips, SweepSchema,
    ::testing::Values(
        Slip{"Choice", "/dtype", R"("bf16")",
             R"(dtype: "bf16" is not allowed; it takes "bfloat16" or "float32")"},
        Slip{"Key", "/methods/1/parms", "{}",
             R"(methods[1]: unknown key "parms"; the keys are budgets, label, name, params)"},
        Slip{"Keys", "/store", R"({"a": 1, "b": 2})",
             R"(store: unknown keys "a" and "b"; the keys are prompts, selections)"},
        Slip{"MissingKey", "/methods/1", R"({"label": "x"})", R"(methods[1]: "name" missing)"},
        Slip{"EitherKey", "/budgets", R"({"from": 64, "to": 128})",
             R"(budgets: "times" or "step" missing)"},
        Slip{"Number", "/threads", "0",
             "threads: 0 is not allowed; it takes a whole number of at least 1 and at most 256"},
        Slip{
            "Alternatives", "/budgets/0", "0.5",
            R"(budgets[0]: 0.5 is not allowed; it takes a whole number of at least 1, the name of a )"
            R"(group ("@small"), {"share": 0.1} or {"from": 64, "to": 512, "times": 2})"},
        Slip{"InsideAnAlternative", "/budgets/0", R"({"share": 2})",
             "budgets[0].share: 2 is not allowed; it takes a number above 0 and at most 1"},
        Slip{"List", "/methods", R"("snapkv")",
             R"(methods: "snapkv" is not allowed; it takes a list of at least 1)"},
        Slip{
            "EmptyText", "/model", R"("")",
            R"(model: "" is not allowed; it takes a text that is not empty or a list of at least 1)"},
        Slip{"Twice", "/question_aware", "[true, true]",
             "question_aware: [true,true] is not allowed; it takes true or false or a list of at "
             "least 1, none twice"},
        Slip{"Pair", "/sanity", R"({"bands": {"vt": [1]}})",
             "sanity.bands.vt: [1] is not allowed; it takes a list of 2"}),
    [](const ::testing::TestParamInfo<Slip>& slip) { return slip.param.name; });

TEST_F(SweepSchema, EverySlipHasALine) {
  sweep_["dtype"] = 3;
  sweep_["bugets"] = {64};
  sweep_.erase("model");
  EXPECT_EQ(
      message_of(check_schema(sweep_, sweep_schema(), "f")),
      "f: \n"
      "  dtype: 3 is not allowed; it takes \"bfloat16\" or \"float32\"\n"
      "  \"model\" missing; unknown key \"bugets\"; the keys are benchmarks, budgets, comment, "
      "device, dtype, exclude, groups, methods, model, name, prefill_chunk, question_aware, "
      "sanity, store, threads");
}

}  // namespace
}  // namespace kvlab
