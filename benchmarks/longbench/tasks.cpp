#include "benchmarks/longbench/tasks.h"

#include <array>

#include "harness/base/status.h"

namespace kvlab {
namespace {

// The texts are the protocol: "asconcisely", the space before "Answer the question based on the
// above article", and the spaces before some line ends are the original's.
#define KVLAB_LONGBENCH_QA "Only give me the answer and do not output any other words."
#define KVLAB_LONGBENCH_PASSAGES \
  "Answer the question based on the given passages. " KVLAB_LONGBENCH_QA
#define KVLAB_LONGBENCH_CONCISE \
  "asconcisely as you can, using a single phrase if possible. Do not provide any explanation.\n\n"
#define KVLAB_LONGBENCH_QASPER                                                                  \
  "as concisely as you can, using a single phrase or sentence if possible. If the question "    \
  "cannot be answered based on the information in the article, write \"unanswerable\". If the " \
  "question is a yes/no question, answer \"yes\", \"no\", or \"unanswerable\". Do not provide " \
  "any explanation.\n\n"

constexpr std::string_view kPassagesContext = KVLAB_LONGBENCH_PASSAGES
    "\n\nThe following are given passages.\n{context}\n\n" KVLAB_LONGBENCH_PASSAGES "\n\n";

constexpr std::array<LongBenchTask, 21> kTasks = {{
    {.name = "narrativeqa",
     .language = "en",
     .context_part =
         "You are given a story, which can be either a novel or a movie script, and a question. "
         "Answer the question " KVLAB_LONGBENCH_CONCISE "Story: {context}\n\n"
         "Now, answer the question based on the story " KVLAB_LONGBENCH_CONCISE,
     .question_part = "Question: {input}\n\n",
     .cue = "Answer:",
     .input_cue = "",
     .metric = LongBenchMetric::kAnswerF1,
     .max_new_tokens = 128,
     .few_shot_or_code = false,
     .first_line_only = false,
     .in_longbench_e = false},
    {.name = "qasper",
     .language = "en",
     .context_part = "You are given a scientific article and a question. Answer the "
                     "question " KVLAB_LONGBENCH_QASPER "Article: {context}\n\n"
                     " Answer the question based on the above article " KVLAB_LONGBENCH_QASPER,
     .question_part = "Question: {input}\n\n",
     .cue = "Answer:",
     .input_cue = "",
     .metric = LongBenchMetric::kAnswerF1,
     .max_new_tokens = 128,
     .few_shot_or_code = false,
     .first_line_only = false,
     .in_longbench_e = true},
    {.name = "multifieldqa_en",
     .language = "en",
     .context_part = "Read the following text and answer briefly.\n\n"
                     "{context}\n\n"
                     "Now, answer the following question based on the above text, only give me the "
                     "answer and do not output any other words.\n\n",
     .question_part = "Question: {input}\n",
     .cue = "Answer:",
     .input_cue = "",
     .metric = LongBenchMetric::kAnswerF1,
     .max_new_tokens = 64,
     .few_shot_or_code = false,
     .first_line_only = false,
     .in_longbench_e = true},
    {.name = "multifieldqa_zh",
     .language = "zh",
     .context_part = "阅读以下文字并用中文简短回答：\n\n"
                     "{context}\n\n"
                     "现在请基于上面的文章回答下面的问题，只告诉我答案，不要输出任何其他字词。\n\n",
     .question_part = "问题：{input}\n",
     .cue = "回答：",
     .input_cue = "",
     .metric = LongBenchMetric::kAnswerF1Zh,
     .max_new_tokens = 64,
     .few_shot_or_code = false,
     .first_line_only = false,
     .in_longbench_e = false},
    {.name = "hotpotqa",
     .language = "en",
     .context_part = kPassagesContext,
     .question_part = "Question: {input}\n",
     .cue = "Answer:",
     .input_cue = "",
     .metric = LongBenchMetric::kAnswerF1,
     .max_new_tokens = 32,
     .few_shot_or_code = false,
     .first_line_only = false,
     .in_longbench_e = true},
    {.name = "2wikimqa",
     .language = "en",
     .context_part = kPassagesContext,
     .question_part = "Question: {input}\n",
     .cue = "Answer:",
     .input_cue = "",
     .metric = LongBenchMetric::kAnswerF1,
     .max_new_tokens = 32,
     .few_shot_or_code = false,
     .first_line_only = false,
     .in_longbench_e = true},
    {.name = "musique",
     .language = "en",
     .context_part = kPassagesContext,
     .question_part = "Question: {input}\n",
     .cue = "Answer:",
     .input_cue = "",
     .metric = LongBenchMetric::kAnswerF1,
     .max_new_tokens = 32,
     .few_shot_or_code = false,
     .first_line_only = false,
     .in_longbench_e = false},
    {.name = "dureader",
     .language = "zh",
     .context_part = "请基于给定的文章回答下述问题。\n\n"
                     "文章：{context}\n\n"
                     "请基于上述文章回答下面的问题。\n\n",
     .question_part = "问题：{input}\n",
     .cue = "回答：",
     .input_cue = "",
     .metric = LongBenchMetric::kRougeLZh,
     .max_new_tokens = 128,
     .few_shot_or_code = false,
     .first_line_only = false,
     .in_longbench_e = false},
    {.name = "gov_report",
     .language = "en",
     .context_part = "You are given a report by a government agency. Write a one-page summary of "
                     "the report.\n\n"
                     "Report:\n{context}\n\n",
     .question_part = "Now, write a one-page summary of the report.\n\n",
     .cue = "Summary:",
     .input_cue = "",
     .metric = LongBenchMetric::kRougeL,
     .max_new_tokens = 512,
     .few_shot_or_code = false,
     .first_line_only = false,
     .in_longbench_e = true},
    {.name = "qmsum",
     .language = "en",
     .context_part = "You are given a meeting transcript and a query containing a question or "
                     "instruction. Answer the query in one or more sentences.\n\n"
                     "Transcript:\n{context}\n\n"
                     "Now, answer the query based on the above meeting transcript in one or more "
                     "sentences.\n\n",
     .question_part = "Query: {input}\n",
     .cue = "Answer:",
     .input_cue = "",
     .metric = LongBenchMetric::kRougeL,
     .max_new_tokens = 512,
     .few_shot_or_code = false,
     .first_line_only = false,
     .in_longbench_e = false},
    {.name = "multi_news",
     .language = "en",
     .context_part = "You are given several news passages. Write a one-page summary of all news. "
                     "\n\n"
                     "News:\n{context}\n\n",
     .question_part = "Now, write a one-page summary of all the news.\n\n",
     .cue = "Summary:",
     .input_cue = "",
     .metric = LongBenchMetric::kRougeL,
     .max_new_tokens = 512,
     .few_shot_or_code = false,
     .first_line_only = false,
     .in_longbench_e = true},
    {.name = "vcsum",
     .language = "zh",
     .context_part = "下面有一段会议记录，请你阅读后，写一段总结，总结会议的内容。\n"
                     "会议记录：\n{context}\n\n",
     .question_part = "",
     .cue = "会议总结：",
     .input_cue = "",
     .metric = LongBenchMetric::kRougeLZh,
     .max_new_tokens = 512,
     .few_shot_or_code = false,
     .first_line_only = false,
     .in_longbench_e = false},
    {.name = "trec",
     .language = "en",
     .context_part = "Please determine the type of the question below. Here are some examples of "
                     "questions.\n\n"
                     "{context}\n",
     .question_part = "{input}",
     .cue = "",
     .input_cue = "Type:",
     .metric = LongBenchMetric::kClassification,
     .max_new_tokens = 64,
     .few_shot_or_code = true,
     .first_line_only = true,
     .in_longbench_e = true},
    {.name = "triviaqa",
     .language = "en",
     .context_part = "Answer the question based on the given passage. " KVLAB_LONGBENCH_QA
                     " The following are some examples.\n\n"
                     "{context}\n\n",
     .question_part = "{input}",
     .cue = "",
     .input_cue = "Answer:",
     .metric = LongBenchMetric::kAnswerF1,
     .max_new_tokens = 32,
     .few_shot_or_code = true,
     .first_line_only = true,
     .in_longbench_e = true},
    {.name = "samsum",
     .language = "en",
     .context_part = "Summarize the dialogue into a few short sentences. The following are some "
                     "examples.\n\n"
                     "{context}\n\n",
     .question_part = "{input}",
     .cue = "",
     .input_cue = "Summary:",
     .metric = LongBenchMetric::kRougeL,
     .max_new_tokens = 128,
     .few_shot_or_code = true,
     .first_line_only = true,
     .in_longbench_e = true},
    {.name = "lsht",
     .language = "zh",
     .context_part = "请判断给定新闻的类别，下面是一些例子。\n\n"
                     "{context}\n",
     .question_part = "{input}",
     .cue = "",
     .input_cue = "",
     .metric = LongBenchMetric::kClassification,
     .max_new_tokens = 64,
     .few_shot_or_code = true,
     .first_line_only = true,
     .in_longbench_e = false},
    {.name = "passage_count",
     .language = "en",
     .context_part = "There are some paragraphs below sourced from Wikipedia. Some of them may be "
                     "duplicates. Please carefully read these paragraphs and determine how many "
                     "unique paragraphs there are after removing duplicates. In other words, how "
                     "many non-repeating paragraphs are there in total?\n\n"
                     "{context}\n\n",
     .question_part = "Please enter the final count of unique paragraphs after removing "
                      "duplicates. The output format should only contain the number, such as 1, 2, "
                      "3, and so on.\n\n",
     .cue = "The final answer is: ",
     .input_cue = "",
     .metric = LongBenchMetric::kCount,
     .max_new_tokens = 32,
     .few_shot_or_code = false,
     .first_line_only = false,
     .in_longbench_e = true},
    {.name = "passage_retrieval_en",
     .language = "en",
     .context_part = "Here are 30 paragraphs from Wikipedia, along with an abstract. Please "
                     "determine which paragraph the abstract is from.\n\n"
                     "{context}\n\n"
                     "The following is an abstract.\n\n",
     .question_part = "{input}\n\n"
                      "Please enter the number of the paragraph that the abstract is from. The "
                      "answer format must be like \"Paragraph 1\", \"Paragraph 2\", etc.\n\n",
     .cue = "The answer is: ",
     .input_cue = "",
     .metric = LongBenchMetric::kRetrieval,
     .max_new_tokens = 32,
     .few_shot_or_code = false,
     .first_line_only = false,
     .in_longbench_e = true},
    {.name = "passage_retrieval_zh",
     .language = "zh",
     .context_part = "以下是若干段落文字，以及其中一个段落的摘要。请确定给定的摘要出自哪一段。\n\n"
                     "{context}\n\n"
                     "下面是一个摘要\n\n",
     .question_part = "{input}\n\n"
                      "请输入摘要所属段落的编号。答案格式必须是\"段落1\"，\"段落2\"等格式\n\n",
     .cue = "答案是：",
     .input_cue = "",
     .metric = LongBenchMetric::kRetrievalZh,
     .max_new_tokens = 32,
     .few_shot_or_code = false,
     .first_line_only = false,
     .in_longbench_e = false},
    {.name = "lcc",
     .language = "code",
     .context_part = "Please complete the code given below. \n{context}",
     .question_part = "",
     .cue = "Next line of code:\n",
     .input_cue = "",
     .metric = LongBenchMetric::kCodeSimilarity,
     .max_new_tokens = 64,
     .few_shot_or_code = true,
     .first_line_only = false,
     .in_longbench_e = true},
    {.name = "repobench-p",
     .language = "code",
     .context_part = "Please complete the code given below. \n{context}",
     .question_part = "{input}",
     .cue = "Next line of code:\n",
     .input_cue = "",
     .metric = LongBenchMetric::kCodeSimilarity,
     .max_new_tokens = 64,
     .few_shot_or_code = true,
     .first_line_only = false,
     .in_longbench_e = true},
}};

#undef KVLAB_LONGBENCH_QA
#undef KVLAB_LONGBENCH_PASSAGES
#undef KVLAB_LONGBENCH_CONCISE
#undef KVLAB_LONGBENCH_QASPER

// `pattern` with its one `placeholder`, if it has it, replaced; nothing in `value` is replaced.
std::string filled(std::string_view pattern, std::string_view placeholder, std::string_view value) {
  const size_t at = pattern.find(placeholder);
  if (at == std::string_view::npos) {
    return std::string(pattern);
  }
  std::string out(pattern.substr(0, at));
  out.append(value);
  out.append(pattern.substr(at + placeholder.size()));
  return out;
}

}  // namespace

std::span<const LongBenchTask> longbench_tasks() { return kTasks; }

absl::StatusOr<const LongBenchTask*> find_longbench_task(std::string_view name) {
  std::string known;
  for (const LongBenchTask& task : kTasks) {
    if (task.name == name) {
      return &task;
    }
    known += known.empty() ? "" : ", ";
    known += task.name;
  }
  return invalid_argument("\"{}\" is no task of LongBench; the tasks are {}", name, known);
}

LongBenchPromptParts fill_longbench_prompt(const LongBenchTask& task, std::string_view context,
                                           std::string_view input) {
  return {.context = filled(task.context_part, "{context}", context),
          .question = filled(task.question_part, "{input}", input),
          .cue = std::string(task.cue)};
}

}  // namespace kvlab
