// What the virtual GPU saw of a pass, shown: as JSON (docs/schema/run.schema.json), as text, and as what goes to
// standard error when it has something to report.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "app/run_options.hpp"

namespace flash::app {

/// hbm, sram and extra_hbm of a pass on the virtual GPU.
nlohmann::ordered_json counted_json(const sim::Ledger& ledger, const cuda::VirtualDevice& device,
                                    const cuda::Watched& watched);

/// Settings, reports, instructions, wavefronts, sectors, barriers and source lines.
nlohmann::ordered_json vgpu_json(const cuda::VirtualDevice& device, const cuda::Watched& watched);

/// The same for people.
std::string vgpu_text(const cuda::VirtualDevice& device, const cuda::Watched& watched);

/// One line in front, then each report; empty where there is none.
std::string reports_text(const Stage& stage, const cuda::VirtualDevice& device);
std::string reports_text(const Stage& stage, const std::vector<gpu::Report>& reports);

}  // namespace flash::app
