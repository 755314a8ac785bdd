#include "benchmarks/ruler/source_loader.h"

#include <fmt/format.h>

#include "datasets/free_haystack.h"
#include "harness/base/files.h"
#include "harness/base/sha256.h"
#include "harness/base/status.h"

namespace kvlab {
namespace {

namespace fs = std::filesystem;

fs::path data_dir() { return cache_dir() / "data"; }

// The folder the user named, or the cached one where it exists.
std::optional<fs::path> choose(const fs::path& named, const char* cached_name) {
  if (!named.empty()) {
    return named;
  }
  const fs::path cached = data_dir() / cached_name;
  return fs::exists(cached) ? std::optional(cached) : std::nullopt;
}

absl::Status missing(std::string_view what, std::string_view option, std::string_view how) {
  return not_found("{} not found: name the folder with --{} (\"{}\" in a sweep file){}", what,
                   option, option, how);
}

}  // namespace

absl::Status RulerSourceLoader::load_words() {
  if (words_ != nullptr) {
    return absl::OkStatus();
  }
  const auto dir = choose(paths_.wordlists, "wordlists");
  if (!dir) {
    return missing("the wonderwords lists were", "wordlists", ", or run scripts/fetch_data.py");
  }
  absl::StatusOr<WordLists> words = WordLists::load(*dir);
  if (!words.ok()) {
    return with_context(words.status(), "--wordlists");
  }
  words_ = std::make_shared<const WordLists>(*std::move(words));
  pairs_ = std::make_shared<const WordPairs>(*words_);
  absl::StatusOr<EnglishWords> english = EnglishWords::load(*dir);
  if (english.ok()) {
    english_ = std::make_shared<const EnglishWords>(*std::move(english));
  } else if (!absl::IsNotFound(english.status())) {
    return with_context(english.status(), "--wordlists");
  }
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<const QuestionSet>> RulerSourceLoader::load_questions(
    std::string_view set) {
  if (const auto found = questions_.find(set); found != questions_.end()) {
    return found->second;
  }
  const bool squad = set == "squad";
  const auto path = choose(squad ? paths_.squad : paths_.hotpotqa, squad ? "squad" : "hotpotqa");
  if (!path) {
    return missing(squad ? "SQuAD 2.0 (dev) was" : "HotpotQA (dev, distractor) was", set, "");
  }
  absl::StatusOr<QuestionSet> questions =
      squad ? QuestionSet::load_squad(*path) : QuestionSet::load_hotpotqa(*path);
  if (!questions.ok()) {
    return with_context(questions.status(), fmt::format("--{}", set));
  }
  return questions_[std::string(set)] = std::make_shared<const QuestionSet>(*std::move(questions));
}

absl::StatusOr<LoadedSources> RulerSourceLoader::load_haystack() {
  if (haystack_) {
    return *haystack_;
  }
  LoadedSources loaded;
  const auto essays = choose(paths_.essays, "essays");
  if (essays) {
    absl::StatusOr<Haystack> haystack = Haystack::load_essays(*essays);
    if (!haystack.ok()) {
      return with_context(haystack.status(), "--essays");
    }
    loaded.sources.haystack = std::make_shared<const Haystack>(*std::move(haystack));
  } else {
    KVLAB_RETURN_IF_ERROR(load_words());
    loaded.sources.haystack = std::make_shared<const Haystack>(make_free_haystack(*words_));
  }
  loaded.name = loaded.sources.haystack->name;
  std::string splitting = "simple-sentences";
  if (const auto punkt = choose(paths_.punkt, "punkt"); essays && punkt) {
    absl::StatusOr<PunktSplitter> splitter = PunktSplitter::load(*punkt);
    if (!splitter.ok()) {
      return with_context(splitter.status(), "--punkt");
    }
    loaded.sources.punkt = std::make_shared<const PunktSplitter>(*std::move(splitter));
    splitting = loaded.sources.punkt->content_hash();
  } else if (essays) {
    loaded.name += "+simple-sentences";  // not RULER's sentence borders
  }
  loaded.hash = sha256_hex(loaded.sources.haystack->content_hash + "|" + splitting);
  haystack_ = loaded;
  return loaded;
}

absl::StatusOr<LoadedSources> RulerSourceLoader::load(const RulerTask& task) {
  LoadedSources loaded;
  std::string hashes;
  if (task.family == RulerFamily::kNeedles && task.filler == NeedleFiller::kEssay) {
    KVLAB_ASSIGN_OR_RETURN(loaded, load_haystack());
    hashes = loaded.hash;
  }
  const bool needs_words = task.family == RulerFamily::kCommonWords ||
                           (task.family == RulerFamily::kNeedles && task.key == NeedleToken::kWord);
  if (needs_words) {
    KVLAB_RETURN_IF_ERROR(load_words());
    loaded.sources.words = words_;
    loaded.sources.pairs = pairs_;
    hashes += "|" + words_->content_hash;
    if (task.family == RulerFamily::kCommonWords && english_ != nullptr) {
      loaded.sources.english = english_;
      hashes += "|" + english_->content_hash;
    }
  }
  if (task.family == RulerFamily::kQuestions) {
    KVLAB_ASSIGN_OR_RETURN(loaded.sources.questions, load_questions(task.question_set));
    hashes += "|" + loaded.sources.questions->content_hash;
    loaded.name = loaded.sources.questions->name;
  }
  if (loaded.name.empty()) {
    loaded.name = needs_words ? "wonderwords" : "generated";
  }
  loaded.hash = sha256_hex(hashes);
  return loaded;
}

}  // namespace kvlab
