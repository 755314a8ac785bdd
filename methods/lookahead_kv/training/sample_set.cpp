#include "methods/lookahead_kv/training/sample_set.h"

#include <algorithm>
#include <fstream>
#include <map>
#include <numeric>

#include "datasets/training/documents.h"
#include "datasets/training/instruction_files.h"
#include "datasets/training/leak_check.h"
#include "datasets/training/seeded_random.h"
#include "harness/base/files.h"
#include "harness/base/interrupt.h"
#include "harness/base/sha256.h"
#include "harness/base/status.h"

namespace kvlab {
namespace {

absl::StatusOr<std::vector<TrainingPrompt>> collect_prompts(const TrainingRecipe& recipe,
                                                            const Tokenizer& tokenizer,
                                                            Json& facts) {
  KVLAB_ASSIGN_OR_RETURN(const TrainingCorpus corpus, load_training_corpus(recipe.text_dir));
  facts["text_hash"] = corpus.hash;
  facts["documents"] = corpus.documents.size();
  std::vector<TrainingPrompt> prompts = build_training_prompts(
      corpus, recipe.mix, [&](std::string_view text) { return tokenizer.count(text); });
  for (const auto& path : recipe.instruction_files) {
    KVLAB_ASSIGN_OR_RETURN(std::vector<TrainingPrompt> more,
                           read_instruction_file(path, recipe.max_reply_tokens));
    KVLAB_ASSIGN_OR_RETURN(facts["instruction_files"][path.filename().string()], sha256_file(path));
    std::move(more.begin(), more.end(), std::back_inserter(prompts));
  }
  if (!recipe.instruction_files.empty()) {
    SeededRandom(recipe.mix.seed).shuffle(prompts);  // the last ones, held out, are of every kind
  }
  return prompts;
}

// 13-grams of the files; those that are not there are named in `facts` under "`key`_absent".
absl::StatusOr<NgramIndex> index_of(const std::vector<std::filesystem::path>& paths,
                                    const std::string& key, Json& facts) {
  NgramIndex index;
  for (const auto& path : paths) {
    if (!std::filesystem::exists(path)) {
      facts[key + "_absent"].push_back(path.filename().string());
      continue;
    }
    KVLAB_RETURN_IF_ERROR(index.add_files(path));
  }
  return index;
}

std::string reply_line(size_t index, const std::vector<int32_t>& reply) {
  return dump_json({{"i", index}, {"reply", reply}}) + "\n";
}

}  // namespace

absl::StatusOr<PromptSet> make_prompt_set(const TrainingRecipe& recipe, const Tokenizer& tokenizer,
                                          const PromptFormat& format, int64_t max_positions) {
  PromptSet set;
  KVLAB_ASSIGN_OR_RETURN(const std::vector<TrainingPrompt> prompts,
                         collect_prompts(recipe, tokenizer, set.facts));
  KVLAB_ASSIGN_OR_RETURN(const NgramIndex benchmark_texts,
                         index_of(recipe.benchmark_texts, "benchmark_texts", set.facts));
  KVLAB_ASSIGN_OR_RETURN(const NgramIndex boilerplate,
                         index_of(recipe.boilerplate_texts, "boilerplate_texts", set.facts));
  set.facts["benchmark_13_grams"] = benchmark_texts.size();
  std::map<std::string, int64_t> kinds;
  std::map<std::string, int64_t> dropped;
  std::string digest;
  int64_t tokens = 0;
  for (const TrainingPrompt& prompt : prompts) {
    // A given reply goes on from the prompt, and may share words across the join.
    const std::string seen = recipe.replies == Replies::kOwn
                                 ? prompt.text
                                 : prompt.text + prompt.answer_prefix + prompt.given_reply;
    if (const auto shared = benchmark_texts.first_shared(seen)) {
      const bool anyones = boilerplate.first_shared(*shared).has_value();
      ++dropped[anyones ? "shares 13 words of boilerplate with a benchmark text"
                        : "shares 13 words with a benchmark text"];
      Json& examples = set.facts[anyones ? "boilerplate_examples" : "shared_examples"];
      if (examples.size() < 20) {
        examples.push_back(*shared);
      }
      continue;
    }
    if (recipe.replies == Replies::kGiven && prompt.given_reply.empty()) {
      ++dropped["has no given reply"];
      continue;
    }
    const std::string text = prompt.chat_template ? format.render(prompt.text, prompt.answer_prefix)
                                                  : prompt.text + prompt.answer_prefix;
    TrainingSample sample{
        .kind = prompt.kind,
        .prompt_ids = tokenizer.encode(text, !prompt.chat_template),
        .reply_ids = {},
        .max_new_tokens = std::min(prompt.max_new_tokens, recipe.max_reply_tokens)};
    if (recipe.replies != Replies::kOwn) {
      sample.reply_ids = tokenizer.encode(prompt.given_reply, /*add_special_tokens=*/false);
      sample.reply_ids.resize(
          std::min(sample.reply_ids.size(), static_cast<size_t>(recipe.max_reply_tokens)));
    }
    const int64_t needed = static_cast<int64_t>(sample.prompt_ids.size()) +
                           std::max({sample.max_new_tokens, recipe.shape.num_tokens,
                                     static_cast<int64_t>(sample.reply_ids.size())});
    if (sample.prompt_ids.empty() || needed > max_positions) {
      ++dropped["longer than the model's positions"];
      continue;
    }
    ++kinds[prompt.kind];
    tokens += static_cast<int64_t>(sample.prompt_ids.size());
    for (const int32_t id : sample.prompt_ids) {
      digest += fmt::format("{},", id);
    }
    digest += fmt::format("{}\n", sample.max_new_tokens);
    for (const int32_t id : sample.reply_ids) {
      digest += fmt::format("{},", id);
    }
    set.samples.push_back(std::move(sample));
  }
  set.facts["kinds"] = kinds;
  set.facts["dropped"] = dropped;
  set.facts["prompts"] = set.samples.size();
  set.facts["prompt_tokens"] = tokens;
  set.hash = sha256_hex(digest + tokenizer.content_hash());
  set.facts["prompt_hash"] = set.hash;
  return set;
}

absl::Status complete_replies(const std::filesystem::path& file, PromptSet& prompts, int64_t batch,
                              const ReplyWriter& write, const ReplyProgress& progress) {
  std::vector<TrainingSample>& samples = prompts.samples;
  std::vector<bool> done;
  for (const TrainingSample& sample : samples) {
    done.push_back(!sample.reply_ids.empty());  // given
  }
  if (std::filesystem::exists(file)) {
    KVLAB_ASSIGN_OR_RETURN(std::string text, read_file(file));
    const size_t whole = text.rfind('\n');  // a killed run may leave half a line
    text.resize(whole == std::string::npos ? 0 : whole + 1);
    KVLAB_RETURN_IF_ERROR(write_file(file, text));
    KVLAB_ASSIGN_OR_RETURN(const std::vector<Json> lines, read_json_lines(file));
    for (const Json& line : lines) {
      KVLAB_ASSIGN_OR_RETURN(const auto i, json_get<uint64_t>(line, "i", file.string()));
      if (i >= samples.size()) {
        return data_loss("{}: a reply for prompt {}, but there are {}; remove the file",
                         file.string(), i, samples.size());
      }
      samples[i].reply_ids = line.at("reply").get<std::vector<int32_t>>();
      done[i] = true;
    }
  } else {
    KVLAB_RETURN_IF_ERROR(write_file(file, ""));
  }
  // Prompts of like length share a batch; the longest first shows at once whether memory suffices.
  std::vector<size_t> order;
  for (size_t i = 0; i < samples.size(); ++i) {
    if (!done[i]) {
      order.push_back(i);
    }
  }
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return samples[a].prompt_ids.size() > samples[b].prompt_ids.size();
  });
  int64_t finished = static_cast<int64_t>(samples.size() - order.size());
  for (size_t begin = 0; begin < order.size() && !interrupted();) {
    const size_t end = std::min(order.size(), begin + static_cast<size_t>(batch));
    std::vector<TrainingSample> chunk;
    for (size_t i = begin; i < end; ++i) {
      chunk.push_back(samples[order[i]]);
    }
    KVLAB_ASSIGN_OR_RETURN(const auto replies, write(chunk));
    std::string lines;
    for (size_t i = begin; i < end; ++i) {
      samples[order[i]].reply_ids = replies[i - begin];
      lines += reply_line(order[i], replies[i - begin]);
    }
    std::ofstream out(file, std::ios::app | std::ios::binary);
    out << lines << std::flush;
    if (!out) {
      return failed_precondition("{}: cannot append replies (disk full?)", file.string());
    }
    finished += static_cast<int64_t>(end - begin);
    progress(finished, static_cast<int64_t>(samples.size()));
    begin = end;
  }
  if (!interrupted()) {
    int64_t empty = 0;
    std::erase_if(samples, [&](const TrainingSample& sample) {
      empty += sample.reply_ids.empty() ? 1 : 0;
      return sample.reply_ids.empty();
    });
    prompts.facts["dropped"]["empty reply"] = empty;
  }
  return absl::OkStatus();
}

}  // namespace kvlab
