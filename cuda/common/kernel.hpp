// All that a kernel file includes.
#pragma once

#include "cuda/common/dropout.hpp"
#include "cuda/common/heads.hpp"
#include "cuda/common/launch.hpp"
#include "cuda/common/score_mask.hpp"
#include "cuda/common/turn.hpp"
#include "cuda/ptx/ptx.hpp"
