#include "datasets/question_sets.h"

#include <algorithm>

#include "harness/base/files.h"
#include "harness/base/json.h"
#include "harness/base/sha256.h"
#include "harness/base/status.h"

namespace kvlab {
namespace {

absl::StatusOr<std::filesystem::path> find_json(const std::filesystem::path& path,
                                                std::string_view usual_name) {
  if (!std::filesystem::is_directory(path)) {
    return path;
  }
  if (std::filesystem::exists(path / usual_name)) {
    return path / usual_name;
  }
  std::vector<std::filesystem::path> found;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(path, error)) {
    if (entry.path().extension() == ".json") {
      found.push_back(entry.path());
    }
  }
  if (found.size() != 1) {
    return not_found("{}: holds {} .json files; name the file, or call it {}", path.string(),
                     found.size(), usual_name);
  }
  return found.front();
}

// Index of a document in the sorted list.
uint32_t index_of(const std::vector<std::string>& documents, const std::string& document) {
  const auto at = std::lower_bound(documents.begin(), documents.end(), document);
  return static_cast<uint32_t>(at - documents.begin());
}

void sort_unique(std::vector<std::string>& documents) {
  std::sort(documents.begin(), documents.end());
  documents.erase(std::unique(documents.begin(), documents.end()), documents.end());
}

struct Parsed {
  std::string origin;
  Json json;
  std::string content_hash;
};

absl::StatusOr<Parsed> read(const std::filesystem::path& path, std::string_view usual_name) {
  Parsed parsed;
  KVLAB_ASSIGN_OR_RETURN(const std::filesystem::path file, find_json(path, usual_name));
  KVLAB_ASSIGN_OR_RETURN(const std::string text, read_file(file));
  parsed.origin = file.string();
  parsed.content_hash = sha256_hex(text);
  KVLAB_ASSIGN_OR_RETURN(parsed.json, parse_json(text, parsed.origin));
  return parsed;
}

absl::StatusOr<QuestionSet> squad_of(const Json& json, const std::string& origin) {
  QuestionSet set;
  KVLAB_ASSIGN_OR_RETURN(const Json articles, json_get<Json>(json, "data", origin));
  for (const Json& article : articles) {
    KVLAB_ASSIGN_OR_RETURN(const Json paragraphs, json_get<Json>(article, "paragraphs", origin));
    for (const Json& paragraph : paragraphs) {
      KVLAB_ASSIGN_OR_RETURN(std::string context,
                             json_get<std::string>(paragraph, "context", origin));
      set.documents.push_back(std::move(context));
    }
  }
  sort_unique(set.documents);
  for (const Json& article : articles) {
    std::vector<uint32_t> of_article;
    for (const Json& paragraph : article.at("paragraphs")) {
      of_article.push_back(
          index_of(set.documents, paragraph.at("context").get_ref<const std::string&>()));
    }
    size_t paragraph_index = 0;
    for (const Json& paragraph : article.at("paragraphs")) {
      const uint32_t own = of_article[paragraph_index++];
      KVLAB_ASSIGN_OR_RETURN(const Json entries, json_get<Json>(paragraph, "qas", origin));
      for (const Json& entry : entries) {
        KVLAB_ASSIGN_OR_RETURN(const bool impossible,
                               json_get_or<bool>(entry, "is_impossible", false, origin));
        if (impossible) {
          continue;
        }
        Question question;
        KVLAB_ASSIGN_OR_RETURN(question.text, json_get<std::string>(entry, "question", origin));
        KVLAB_ASSIGN_OR_RETURN(const Json answers, json_get<Json>(entry, "answers", origin));
        for (const Json& answer : answers) {
          KVLAB_ASSIGN_OR_RETURN(std::string text, json_get<std::string>(answer, "text", origin));
          question.answers.push_back(std::move(text));
        }
        question.documents = {own};
        for (const uint32_t other : of_article) {
          if (other != own) {
            question.more_documents.push_back(other);
          }
        }
        set.questions.push_back(std::move(question));
      }
    }
  }
  return set;
}

// "title\nsentences" of one [title, [sentence, ...]] entry.
absl::StatusOr<std::string> hotpot_document(const Json& entry, const std::string& origin) {
  if (!entry.is_array() || entry.size() != 2 || !entry[0].is_string() || !entry[1].is_array()) {
    return data_loss("{}: a context entry is not [title, [sentence, ...]]", origin);
  }
  std::string document = entry[0].get<std::string>() + "\n";
  for (const Json& sentence : entry[1]) {
    if (!sentence.is_string()) {
      return data_loss("{}: a context sentence is no string", origin);
    }
    document += sentence.get_ref<const std::string&>();
  }
  return document;
}

absl::StatusOr<QuestionSet> hotpotqa_of(const Json& json, const std::string& origin) {
  QuestionSet set;
  if (!json.is_array()) {
    return data_loss("{}: not a list of questions", origin);
  }
  std::vector<std::vector<std::string>> documents_of;
  for (const Json& record : json) {
    KVLAB_ASSIGN_OR_RETURN(const Json context, json_get<Json>(record, "context", origin));
    std::vector<std::string>& documents = documents_of.emplace_back();
    for (const Json& entry : context) {
      KVLAB_ASSIGN_OR_RETURN(std::string document, hotpot_document(entry, origin));
      documents.push_back(std::move(document));
    }
    set.documents.insert(set.documents.end(), documents.begin(), documents.end());
  }
  sort_unique(set.documents);
  for (size_t i = 0; i < json.size(); ++i) {
    Question question;
    KVLAB_ASSIGN_OR_RETURN(question.text, json_get<std::string>(json[i], "question", origin));
    KVLAB_ASSIGN_OR_RETURN(std::string answer, json_get<std::string>(json[i], "answer", origin));
    question.answers = {std::move(answer)};
    for (const std::string& document : documents_of[i]) {
      question.documents.push_back(index_of(set.documents, document));
    }
    set.questions.push_back(std::move(question));
  }
  return set;
}

absl::StatusOr<QuestionSet> finish(absl::StatusOr<QuestionSet> set, const Parsed& parsed,
                                   std::string name) {
  if (!set.ok()) {
    return set.status();
  }
  if (set->questions.empty()) {
    return data_loss("{}: no answerable questions in it", parsed.origin);
  }
  set->name = std::move(name);
  set->content_hash = parsed.content_hash;
  return set;
}

}  // namespace

absl::StatusOr<QuestionSet> QuestionSet::load_squad(const std::filesystem::path& path) {
  KVLAB_ASSIGN_OR_RETURN(const Parsed parsed, read(path, "squad.json"));
  return finish(squad_of(parsed.json, parsed.origin), parsed, "squad");
}

absl::StatusOr<QuestionSet> QuestionSet::load_hotpotqa(const std::filesystem::path& path) {
  KVLAB_ASSIGN_OR_RETURN(const Parsed parsed, read(path, "hotpotqa.json"));
  return finish(hotpotqa_of(parsed.json, parsed.origin), parsed, "hotpotqa");
}

}  // namespace kvlab
