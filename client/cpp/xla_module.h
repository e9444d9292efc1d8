// Converts XLA's types to those of ranker.h. Not compiled here, because XLA's headers come only with its sources.

#ifndef HLORANK_XLA_MODULE_H_
#define HLORANK_XLA_MODULE_H_

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "ranker.h"
#include "xla/hlo/ir/hlo_module.h"
#include "xla/layout.h"

namespace hlorank {

// Returns the graph of a module before layout assignment.
inline Graph GraphOf(const xla::HloModule& module) { return Graph(module.ToProto().SerializeAsString()); }

// Returns the configurable instructions of a module, in the order of a configuration.
inline std::vector<const xla::HloInstruction*> Configurable(const xla::HloModule& module,
                                                            const v1::PutGraphResponse& put) {
  absl::flat_hash_map<absl::string_view, const xla::HloInstruction*> by_name;
  for (const xla::HloComputation* computation : module.computations()) {
    for (const xla::HloInstruction* instruction : computation->instructions()) {
      by_name[instruction->name()] = instruction;
    }
  }
  std::vector<const xla::HloInstruction*> configurable;
  for (const v1::ConfigurableNode& node : put.configurable_nodes()) configurable.push_back(by_name.at(node.name()));
  return configurable;
}

// Returns the layouts of an instruction: of its output, its first and its second operand. A null pointer keeps the
// compiler's default.
inline NodeLayout LayoutOf(const std::array<const xla::Layout*, 3>& tensors) {
  NodeLayout layout;
  for (size_t tensor = 0; tensor < tensors.size(); ++tensor) {
    if (tensors[tensor] == nullptr) continue;
    const auto& minor_to_major = tensors[tensor]->minor_to_major();
    layout[tensor].assign(minor_to_major.begin(), minor_to_major.end());
  }
  return layout;
}

}  // namespace hlorank

#endif  // HLORANK_XLA_MODULE_H_
