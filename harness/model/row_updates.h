// Low-rank updates beside one decoder layer's linear layers, for rows that have them. No torch.
#pragma once

#include "harness/kernels/low_rank_update.h"

namespace kvlab {

struct RowUpdates {  // null: none
  const LowRankUpdate* q = nullptr;
  const LowRankUpdate* k = nullptr;
  const LowRankUpdate* v = nullptr;
  const LowRankUpdate* o = nullptr;
  const LowRankUpdate* gate = nullptr;
  const LowRankUpdate* up = nullptr;
  const LowRankUpdate* down = nullptr;
};

}  // namespace kvlab
