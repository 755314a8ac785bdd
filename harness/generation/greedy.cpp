#include "harness/generation/greedy.h"

#include <algorithm>
#include <limits>
#include <span>
#include <utility>

#include "harness/base/clock.h"
#include "harness/base/status.h"
#include "harness/kernels/argmax.h"

namespace kvlab {
namespace {

bool contains(std::span<const int32_t> ids, int64_t id) {
  return std::find(ids.begin(), ids.end(), id) != ids.end();
}

// The best id that is not in `banned`; -1 where there is none.
int32_t best_id(std::span<const float> logits, std::span<const int32_t> banned) {
  if (banned.empty()) {
    return static_cast<int32_t>(argmax(logits.data(), static_cast<int64_t>(logits.size())));
  }
  int64_t best = -1;
  float best_value = -std::numeric_limits<float>::infinity();
  for (size_t i = 0; i < logits.size(); ++i) {
    const bool better = best < 0 ? !(logits[i] != logits[i]) : logits[i] > best_value;
    if (better && !contains(banned, static_cast<int64_t>(i))) {
      best = static_cast<int64_t>(i);
      best_value = logits[i];
    }
  }
  return static_cast<int32_t>(best);
}

absl::StatusOr<int32_t> choose(std::span<const float> logits, std::span<const int32_t> banned) {
  const int32_t id = best_id(logits, banned);
  if (id < 0) {
    return data_loss("no token can be chosen: every logit is NaN or banned");
  }
  return id;
}

std::span<const float> as_span(const at::Tensor& logits) {
  return {logits.const_data_ptr<float>(), static_cast<size_t>(logits.numel())};
}

struct Arm {
  ArmRequest request;
  ArmReply reply;
  bool chosen_last = false;  // the reply is complete; at most its last query is still to come
  bool done = false;
};

// Takes the next token from its logits; decides whether the arm needs another step.
absl::Status take_token(Arm& arm, std::span<const float> logits) {
  const auto made = static_cast<int64_t>(arm.reply.token_ids.size());
  const bool ban = made < arm.request.min_new_tokens;
  KVLAB_ASSIGN_OR_RETURN(const int32_t id,
                         choose(logits, ban ? std::span<const int32_t>(arm.request.stop_ids)
                                            : std::span<const int32_t>()));
  arm.reply.token_ids.push_back(id);
  if (contains(arm.request.stop_ids, id)) {
    arm.chosen_last = true;
    arm.reply.stop_reason = StopReason::kStopId;
  } else if (made + 1 >= arm.request.max_new_tokens) {
    arm.chosen_last = true;
    arm.reply.stop_reason = StopReason::kMaxNewTokens;
  }
  arm.done = arm.chosen_last && !arm.request.capture_queries;
  return absl::OkStatus();
}

absl::Status check_request(const ArmRequest& request, size_t index) {
  if (request.max_new_tokens < 1) {
    return invalid_argument("arm {}: max_new_tokens is {}, expected 1 or more", index,
                            request.max_new_tokens);
  }
  const int64_t fed = request.max_new_tokens - (request.capture_queries ? 0 : 1);
  const int64_t room = request.cache.max_new_tokens() - request.cache.num_new();
  if (room < fed) {
    return invalid_argument("arm {}: its cache has room for {} tokens, {} are needed", index, room,
                            fed);
  }
  if (!request.first_logits.defined() || request.first_logits.dim() != 1) {
    return invalid_argument("arm {}: the logits of its first token are missing", index);
  }
  return absl::OkStatus();
}

}  // namespace

std::string_view stop_reason_name(StopReason reason) {
  return reason == StopReason::kStopId ? "stop_id" : "max_new_tokens";
}

absl::StatusOr<int32_t> argmax_token(const at::Tensor& logits) {
  return choose(as_span(logits.to(at::kCPU, at::kFloat).contiguous()), {});
}

absl::StatusOr<std::vector<ArmReply>> decode_greedy(CausalLm& model,
                                                    std::vector<ArmRequest> requests,
                                                    const GreedyOptions& options) {
  const auto start = Clock::now();
  std::vector<Arm> arms;
  for (ArmRequest& request : requests) {
    KVLAB_RETURN_IF_ERROR(check_request(request, arms.size()));
    Arm& arm = arms.emplace_back(Arm{std::move(request), {}});
    const at::Tensor logits = arm.request.first_logits.to(at::kCPU, at::kFloat).contiguous();
    KVLAB_RETURN_IF_ERROR(take_token(arm, as_span(logits)));
    arm.reply.arms_in_batch = static_cast<int64_t>(requests.size());
    arm.reply.decode_s = seconds_since(start);
  }
  for (int64_t step = 1;; ++step) {
    std::vector<Arm*> running;
    std::vector<int32_t> ids;
    std::vector<KvCache*> caches;
    std::vector<CapturedQueries*> captured;
    for (Arm& arm : arms) {
      if (!arm.done) {
        running.push_back(&arm);
        ids.push_back(arm.reply.token_ids.back());
        caches.push_back(&arm.request.cache);
        captured.push_back(arm.request.capture_queries ? &arm.reply.queries : nullptr);
      }
    }
    if (running.empty()) {
      break;
    }
    const auto step_start = Clock::now();
    KVLAB_ASSIGN_OR_RETURN(at::Tensor logits, model.decode_step(ids, caches, captured));
    logits = logits.to(at::kCPU).contiguous();
    const double share = seconds_since(step_start) / static_cast<double>(running.size());
    const auto vocab_size = static_cast<size_t>(logits.size(1));
    for (size_t i = 0; i < running.size(); ++i) {
      Arm& arm = *running[i];
      if (arm.chosen_last) {
        arm.done = true;
      } else {
        KVLAB_RETURN_IF_ERROR(take_token(arm, as_span(logits).subspan(i * vocab_size, vocab_size)));
      }
      ++arm.reply.steps;
      arm.reply.decode_s = seconds_since(start);
      arm.reply.decode_share_s += share;
    }
    if (options.on_step && !options.on_step(step)) {
      return absl::CancelledError("decoding was interrupted");
    }
  }
  std::vector<ArmReply> replies;
  for (Arm& arm : arms) {
    for (auto* tensors : {&arm.reply.queries.queries, &arm.reply.queries.keys}) {
      for (at::Tensor& tensor : *tensors) {
        tensor = tensor.contiguous();  // without the room for further rows
      }
    }
    replies.push_back(std::move(arm.reply));
  }
  return replies;
}

}  // namespace kvlab
