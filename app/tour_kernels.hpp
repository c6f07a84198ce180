// The tour's last table: the stages' kernels on the virtual GPU, beside the CPU programs at the same tiles.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "app/backend.hpp"
#include "app/lesson.hpp"
#include "stages/common/check.hpp"

namespace flash::app {

/// One program's kernels.
struct KernelStop {
  Step step;
  Pass on_vgpu, on_cpu;
  OutputCheck worst;  ///< the output nearest to its tolerance
  bool checks_pass = false;
  std::vector<gpu::Report> reports;
  bool equal = false;  ///< both moved the same elements of every tensor

  bool has_to_be() const { return on_vgpu.blocks.has_value(); }
  bool ok() const { return checks_pass && reports.empty() && (equal || !has_to_be()); }
};

struct KernelTour {
  std::string why_not;  ///< there is no virtual GPU here; empty: there is
  Shape shape;
  std::vector<KernelStop> stops;

  bool ok() const;
};

KernelTour make_kernel_tour();
std::string text(const KernelTour& tour);
nlohmann::ordered_json json(const KernelTour& tour);

}  // namespace flash::app
