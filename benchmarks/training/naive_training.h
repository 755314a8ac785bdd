// LookaheadKV's training step as one would write it first: eager attention that holds every score,
// and gradients through every row of the model. What kvlab's own step is measured against.
#pragma once

#include "methods/lookahead_kv/training/lookahead_pass.h"
#include "methods/lookahead_kv/training/sample_set.h"

namespace kvlab {

// The loss of sample_loss() (trainer.h), all of it in the frozen model's precision. With `backward`
// its gradient is added to the adapter's.
double naive_sample_loss(FrozenModel& model, const LookaheadAdapter& adapter,
                         const TrainingSample& sample, bool backward);

}  // namespace kvlab
