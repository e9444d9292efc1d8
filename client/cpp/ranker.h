// Ranks layouts of one graph with hlorank, through the stubs that protoc generates from proto/.

#ifndef HLORANK_RANKER_H_
#define HLORANK_RANKER_H_

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <grpcpp/grpcpp.h>

#include "hlorank/v1/cost_model_service.grpc.pb.h"

namespace hlorank {

// Minor-to-major dimensions of the output, the first and the second operand of one instruction: at most 6 values of
// 0..5 each. An empty list keeps the compiler's default.
using NodeLayout = std::array<std::vector<int>, 3>;

// One configuration: a layout per configurable instruction, in the order of PutGraphResponse.configurable_nodes.
using Configuration = std::vector<NodeLayout>;

// A graph: its bytes, and its hash once a server has answered with it. Use one object for all calls about a module.
class Graph {
 public:
  // A serialized xla.HloModuleProto or xla.HloProto.
  explicit Graph(std::string module) : module_(std::move(module)) {
    // Load balancers route by this key. Any value works that is constant for a graph. Tuners that share replicas with
    // the Rust or Python client should compute the BLAKE3 key of client/README.md, so that all use the same replica.
    std::ostringstream route;
    route << std::hex << std::hash<std::string>()(module_);
    route_ = route.str();
  }

  const std::string& route() const { return route_; }
  bool has_hash() const { return !hash_.empty(); }
  void set_hash(std::string hash) { hash_ = std::move(hash); }
  void clear_hash() { hash_.clear(); }

  // Returns the message of the graph: its hash if that is known, otherwise the module.
  v1::Graph message() const {
    v1::Graph graph;
    if (has_hash()) {
      graph.set_graph_hash(hash_);
    } else {
      graph.set_hlo_module(module_);
      graph.set_task(v1::TASK_LAYOUT);
    }
    return graph;
  }

 private:
  std::string module_, route_, hash_;
};

// Packs configurations, which must all have the same number of instructions: the distinct layouts of each instruction,
// and the index of the layout that each configuration uses.
inline v1::PackedLayoutConfigs Pack(const std::vector<Configuration>& configurations) {
  using Entry = std::array<uint32_t, 3>;
  const size_t slots = configurations.empty() ? 0 : configurations.front().size();
  v1::PackedLayoutConfigs packed;
  packed.set_config_count(configurations.size());
  std::vector<std::map<Entry, uint32_t>> tables(slots);
  for (size_t slot = 0; slot < slots; ++slot) packed.add_tables();
  std::vector<uint32_t> indices;
  size_t largest = 0;
  for (const Configuration& configuration : configurations) {
    for (size_t slot = 0; slot < slots; ++slot) {
      Entry entry = {0, 0, 0};
      for (size_t tensor = 0; tensor < entry.size(); ++tensor) {
        uint32_t weight = 1;
        for (int dimension : configuration.at(slot)[tensor]) {
          entry[tensor] += (dimension + 1) * weight;
          weight *= 7;
        }
      }
      auto [found, is_new] = tables[slot].emplace(entry, tables[slot].size());
      if (is_new) {
        for (uint32_t number : entry) packed.mutable_tables(slot)->add_entries(number);
      }
      indices.push_back(found->second);
      largest = std::max(largest, tables[slot].size());
    }
  }
  std::string* bytes = packed.mutable_indices();
  for (uint32_t index : indices) {
    bytes->push_back(static_cast<char>(index & 0xff));
    if (largest > 256) bytes->push_back(static_cast<char>(index >> 8));
  }
  return packed;
}

// Calls a server, such as grpc::CreateChannel("127.0.0.1:7070", grpc::InsecureChannelCredentials()).
class Ranker {
 public:
  // `timeout` is the maximum time of each call.
  Ranker(const std::shared_ptr<grpc::Channel>& channel, std::chrono::milliseconds timeout)
      : stub_(v1::CostModelService::NewStub(channel)), timeout_(timeout) {}

  // Sends a graph. The response lists the instructions that a configuration sets.
  grpc::Status Put(Graph& graph, v1::PutGraphResponse& response) {
    graph.clear_hash();
    v1::PutGraphRequest request;
    *request.mutable_graph() = graph.message();
    grpc::ClientContext context;
    Prepare(context, graph);
    const grpc::Status status = stub_->PutGraph(&context, request, &response);
    if (status.ok() && response.graph_hash().size() != 32) return Invalid("the graph hash does not have 32 bytes");
    if (status.ok()) graph.set_hash(response.graph_hash());
    return status;
  }

  // Ranks configurations: response.ranking() lists their numbers, predicted fastest first. Sends the graph once and by
  // hash afterwards, and sends it again if the server has lost it. Returns INTERNAL if the answer is impossible.
  grpc::Status Rank(Graph& graph, const std::vector<Configuration>& configurations,
                    v1::RankConfigsResponse& response) {
    v1::RankConfigsRequest request;
    *request.mutable_batch()->mutable_packed_layout_configs() = Pack(configurations);
    grpc::Status status = Call(graph, request, response);
    if (graph.has_hash() && IsGraphNotCached(status)) {
      graph.clear_hash();
      status = Call(graph, request, response);
    }
    if (status.ok()) status = Check(response, configurations.size());
    if (status.ok()) graph.set_hash(response.graph_hash());
    return status;
  }

 private:
  static grpc::Status Invalid(const std::string& violation) {
    return grpc::Status(grpc::StatusCode::INTERNAL, "invalid answer from the server: " + violation);
  }

  // Checks a ranking of all configurations before its numbers are used as indices.
  static grpc::Status Check(const v1::RankConfigsResponse& response, size_t configurations) {
    const size_t ranked = response.ranking_size();
    if (response.scored_configs() != configurations || ranked != configurations ||
        static_cast<size_t>(response.ranking_scores_size()) != ranked) {
      return Invalid("it does not rank every configuration");
    }
    if (response.graph_hash().size() != 32) return Invalid("the graph hash does not have 32 bytes");
    std::vector<bool> is_ranked(configurations);
    for (size_t rank = 0; rank < ranked; ++rank) {
      const uint32_t number = response.ranking(rank);
      if (number >= configurations || is_ranked[number]) return Invalid("a number is out of range or ranked twice");
      if (!std::isfinite(response.ranking_scores(rank))) return Invalid("a score is not finite");
      is_ranked[number] = true;
    }
    return grpc::Status::OK;
  }

  void Prepare(grpc::ClientContext& context, const Graph& graph) const {
    context.set_deadline(std::chrono::system_clock::now() + timeout_);
    context.AddMetadata("x-hlorank-route", graph.route());
  }

  grpc::Status Call(const Graph& graph, v1::RankConfigsRequest& request, v1::RankConfigsResponse& response) {
    *request.mutable_graph() = graph.message();
    grpc::ClientContext context;
    Prepare(context, graph);
    return stub_->RankConfigs(&context, request, &response);
  }

  // The details contain the reason as a string of google.rpc.ErrorInfo. Searching for it needs no further stubs.
  static bool IsGraphNotCached(const grpc::Status& status) {
    return status.error_code() == grpc::StatusCode::FAILED_PRECONDITION &&
           status.error_details().find("GRAPH_NOT_CACHED") != std::string::npos;
  }

  std::unique_ptr<v1::CostModelService::Stub> stub_;
  std::chrono::milliseconds timeout_;
};

}  // namespace hlorank

#endif  // HLORANK_RANKER_H_
