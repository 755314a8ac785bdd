#include "reports/show.h"

#include <algorithm>
#include <vector>

#include "harness/base/status.h"
#include "harness/text/utf8.h"
#include "reports/escape.h"
#include "reports/kept_stretches.h"
#include "results/packing.h"

namespace kvlab {
namespace {

constexpr int64_t kMapColumns = 72;
constexpr size_t kPromptEnd = 600;  // code points shown at each end

// Foreign text over several lines: newlines stay, every other control character is shown.
std::string plain_block(std::string_view text, std::string_view indent) {
  std::string out;
  while (true) {
    const size_t newline = text.find('\n');
    out += std::string(indent) + plain_line(text.substr(0, newline)) + "\n";
    if (newline == std::string_view::npos) {
      return out;
    }
    text.remove_prefix(newline + 1);
  }
}

std::string both_ends(const std::string& text) {
  const std::u32string points = to_code_points(to_valid_utf8(text));
  if (points.size() <= 2 * kPromptEnd) {
    return text;
  }
  return to_utf8(points.substr(0, kPromptEnd)) +
         fmt::format("\n[... {} characters; --prompt shows all ...]\n",
                     points.size() - 2 * kPromptEnd) +
         to_utf8(points.substr(points.size() - kPromptEnd));
}

// How densely each stretch of the prompt is kept, averaged over a layer's heads.
std::string density_line(const std::vector<std::vector<int32_t>>& heads, int64_t prompt_len) {
  constexpr std::string_view kShades = " .:-=+*#";
  std::string line;
  for (const KeptStretch& stretch : kept_stretches(heads, prompt_len, kMapColumns)) {
    const auto shade =
        static_cast<size_t>(stretch.share * static_cast<double>(kShades.size() - 1) + 0.999);
    line += kShades[std::min(shade, kShades.size() - 1)];
  }
  return line;
}

std::string ranges(const std::vector<int32_t>& positions) {
  std::string out;
  for (size_t i = 0; i < positions.size();) {
    size_t j = i;
    while (j + 1 < positions.size() && positions[j + 1] == positions[j] + 1) {
      ++j;
    }
    out += (out.empty() ? "" : ",") + (i == j ? fmt::format("{}", positions[i])
                                              : fmt::format("{}-{}", positions[i], positions[j]));
    i = j + 1;
  }
  return out;
}

std::string selection_text(const Selection& selection, bool positions) {
  std::string out;
  for (size_t layer = 0; layer < selection.kept.size(); ++layer) {
    if (positions) {
      for (size_t head = 0; head < selection.kept[layer].size(); ++head) {
        out += fmt::format("    layer {:2} head {:2}: {}\n", layer, head,
                           ranges(selection.kept[layer][head]));
      }
    } else if (selection.prompt_len > 0 && !selection.kept[layer].empty()) {
      out += fmt::format("    layer {:2} |{}|\n", layer,
                         density_line(selection.kept[layer], selection.prompt_len));
    }
  }
  return out;
}

absl::Status unknown_sample(const Database& db, const std::string& key) {
  KVLAB_ASSIGN_OR_RETURN(Statement like,
                         db.prepare("SELECT sample_key FROM samples WHERE instr(sample_key, ?1) "
                                    "UNION ALL SELECT * FROM (SELECT sample_key FROM samples "
                                    "ORDER BY id LIMIT 3) LIMIT 5"));
  like.bind(1, key);
  std::string known;
  while (true) {
    KVLAB_ASSIGN_OR_RETURN(const bool row, like.step());
    if (!row) {
      break;
    }
    known += (known.empty() ? "" : ", ") + plain_line(like.text(0));
  }
  return not_found("{}: no sample \"{}\"; samples are named like: {}", db.path().string(),
                   plain_line(key), known.empty() ? "(none stored)" : known);
}

absl::StatusOr<std::string> arm_text(const Statement& row, const ShowOptions& options) {
  std::string out = fmt::format("{}, budget {}{}: ", plain_line(row.text(0)), row.text(1),
                                row.int64(2) != 0 ? "" : " (question unseen)");
  if (row.text_view(3) != "ok") {
    return out + fmt::format("{}: {}\n\n", row.text(3), plain_line(row.text(4)));
  }
  out += fmt::format("{:.1f} ({})\n", row.real(5), plain_line(row.text(6)));
  out += fmt::format(
      "  {} new tokens, stop: {}; {} draft tokens; kept {} to {} entries a head, {} in all, {:.2f} "
      "MiB\n",
      row.int64(7), plain_line(row.text(8)), row.int64(9), row.int64(10), row.int64(11),
      row.int64(12), row.real(13) / (1024.0 * 1024.0));
  out += fmt::format(
      "  seconds: prefill {:.4f}, query {:.4f}, score {:.4f}, choose {:.4f}, draft {:.4f}, compact "
      "{:.4f}; decode {:.4f} for {} steps of {} arms\n",
      row.real(14), row.real(15), row.real(16), row.real(17), row.real(18), row.real(19),
      row.real(20), row.int64(21), row.int64(22));
  out += "  params: " + plain_line(row.text(25)) + "\n";
  out += "  reply:\n" + plain_block(row.text(23), "    ");
  if (!row.is_null(24)) {
    KVLAB_ASSIGN_OR_RETURN(const Selection selection, unpack_selection(row.blob(24)));
    out += options.positions ? "  kept positions:\n"
                             : "  kept, from the prompt's start to its end (' ' none, '#' all):\n";
    out += selection_text(selection, options.positions);
  }
  return out + "\n";
}

constexpr const char* kArms =
    "SELECT d.label, r.budget, r.question_aware, r.status, r.reason, r.score, r.metric, "
    "r.new_tokens, r.stop_reason, r.draft_tokens, r.kept_min, r.kept_max, r.kept_total, "
    "r.cache_bytes, r.prefill_s, r.query_s, r.score_s, r.choose_s, r.draft_s, r.compact_s, "
    "r.decode_s, r.decode_steps, r.arms_in_batch, y.reply, k.kept, d.json "
    "FROM results AS r JOIN methods AS d ON d.id = r.method_id "
    "LEFT JOIN replies AS y ON y.result_id = r.id LEFT JOIN selections AS k ON k.result_id = r.id "
    "WHERE r.prompt_id = ?1 AND (?2 = '' OR d.name = ?2 OR d.label = ?2) ORDER BY r.id";

}  // namespace

absl::StatusOr<std::string> show_sample(const Database& db, const ShowOptions& options) {
  KVLAB_ASSIGN_OR_RETURN(
      Statement prompts,
      db.prepare("SELECT q.id, s.benchmark, s.dataset, s.task, s.length, s.reference_answers, "
                 "s.extra, m.label, m.json, p.label, p.json, q.prompt_tokens, q.question_start, "
                 "q.prompt_hash, t.text FROM prompts AS q JOIN samples AS s ON s.id = q.sample_id "
                 "JOIN models AS m ON m.id = q.model_id "
                 "JOIN protocols AS p ON p.id = q.protocol_id "
                 "LEFT JOIN prompt_texts AS t ON t.prompt_id = q.id "
                 "WHERE s.sample_key = ? ORDER BY q.id"));
  prompts.bind(1, options.sample);
  std::string out;
  while (true) {
    KVLAB_ASSIGN_OR_RETURN(const bool row, prompts.step());
    if (!row) {
      break;
    }
    out += out.empty() ? "" : std::string(80, '=') + "\n";
    out += fmt::format("sample      {}\n", plain_line(options.sample));
    out += fmt::format("benchmark   {}, task {}, length {}, data set {}\n",
                       plain_line(prompts.text(1)), plain_line(prompts.text(3)), prompts.int64(4),
                       plain_line(prompts.text(2)));
    out += fmt::format("model       {} {}\n", plain_line(prompts.text(7)),
                       plain_line(prompts.text(8)));
    out += fmt::format("protocol    {} {}\n", plain_line(prompts.text(9)),
                       plain_line(prompts.text(10)));
    out += fmt::format("references  {}\n", plain_line(prompts.text(5)));
    out += fmt::format("extra       {}\n", plain_line(prompts.text(6)));
    out +=
        fmt::format("prompt      {} tokens, {}, SHA-256 of the ids {}\n\n", prompts.int64(11),
                    prompts.is_null(12) ? std::string("no separate question")
                                        : fmt::format("question from token {}", prompts.int64(12)),
                    plain_line(prompts.text(13)));
    if (prompts.is_null(14)) {
      out += "  (the prompt's text was not stored)\n\n";
    } else {
      const std::string text = prompts.text(14);
      out += plain_block(options.prompt ? text : both_ends(text), "  | ") + "\n";
    }
    KVLAB_ASSIGN_OR_RETURN(Statement arms, db.prepare(kArms));
    arms.bind(1, prompts.int64(0)).bind(2, options.only_method);
    while (true) {
      KVLAB_ASSIGN_OR_RETURN(const bool arm, arms.step());
      if (!arm) {
        break;
      }
      KVLAB_ASSIGN_OR_RETURN(const std::string text, arm_text(arms, options));
      out += text;
    }
  }
  if (out.empty()) {
    return unknown_sample(db, options.sample);
  }
  return out;
}

}  // namespace kvlab
