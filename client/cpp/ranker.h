// Ranks layouts of one graph with hlorank, through the stubs that protoc makes of proto/.

#ifndef HLORANK_RANKER_H_
#define HLORANK_RANKER_H_

#include <algorithm>
#include <array>
#include <chrono>
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

// One candidate: a layout per configurable instruction, in the order of PutGraphResponse.configurable_nodes.
using Candidate = std::vector<NodeLayout>;

// A graph as a client holds it: the bytes, and the hash to send in their place once a server told it. Keep one for
// all calls about a module.
class Graph {
 public:
  // A serialized xla.HloModuleProto or xla.HloProto.
  explicit Graph(std::string module) : module_(std::move(module)) {
    // What a balancer routes by. Any value does that stays the same for a graph. Tuners that share replicas with the
    // Rust or Python client take the BLAKE3 key of client/README.md, so that one replica has the graph for all.
    std::ostringstream route;
    route << std::hex << std::hash<std::string>()(module_);
    route_ = route.str();
  }

  const std::string& route() const { return route_; }
  bool has_hash() const { return !hash_.empty(); }
  void learn(std::string hash) { hash_ = std::move(hash); }
  void forget() { hash_.clear(); }

  // The graph as it is sent: by its hash where that is known.
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

// The packed form of candidates, which must all have the same number of instructions: per instruction the distinct
// layouts, and which of them each candidate takes.
inline v1::PackedLayoutConfigs Pack(const std::vector<Candidate>& candidates) {
  using Entry = std::array<uint32_t, 3>;
  const size_t slots = candidates.empty() ? 0 : candidates.front().size();
  v1::PackedLayoutConfigs packed;
  packed.set_config_count(candidates.size());
  std::vector<std::map<Entry, uint32_t>> tables(slots);
  for (size_t slot = 0; slot < slots; ++slot) packed.add_tables();
  std::vector<uint32_t> indices;
  size_t largest = 0;
  for (const Candidate& candidate : candidates) {
    for (size_t slot = 0; slot < slots; ++slot) {
      Entry entry = {0, 0, 0};
      for (size_t tensor = 0; tensor < entry.size(); ++tensor) {
        uint32_t weight = 1;
        for (int dimension : candidate.at(slot)[tensor]) {
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

// A server, such as grpc::CreateChannel("127.0.0.1:7070", grpc::InsecureChannelCredentials()).
class Ranker {
 public:
  // `timeout` is for each call.
  Ranker(const std::shared_ptr<grpc::Channel>& channel, std::chrono::milliseconds timeout)
      : stub_(v1::CostModelService::NewStub(channel)), timeout_(timeout) {}

  // Sends a graph, and learns which instructions a candidate sets.
  grpc::Status Put(Graph& graph, v1::PutGraphResponse& response) {
    graph.forget();
    v1::PutGraphRequest request;
    *request.mutable_graph() = graph.message();
    grpc::ClientContext context;
    Prepare(context, graph);
    const grpc::Status status = stub_->PutGraph(&context, request, &response);
    if (status.ok()) graph.learn(response.graph_hash());
    return status;
  }

  // Ranks candidates: response.ranking() has their numbers, the one that is predicted fastest first. Sends the graph
  // once, by hash afterwards, and again where the server has lost it.
  grpc::Status Rank(Graph& graph, const std::vector<Candidate>& candidates, v1::RankConfigsResponse& response) {
    v1::RankConfigsRequest request;
    *request.mutable_batch()->mutable_packed_layout_configs() = Pack(candidates);
    grpc::Status status = Call(graph, request, response);
    if (graph.has_hash() && IsGraphNotCached(status)) {
      graph.forget();
      status = Call(graph, request, response);
    }
    if (status.ok()) graph.learn(response.graph_hash());
    return status;
  }

 private:
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

  // The reason is a string in the google.rpc.ErrorInfo of the details: looking for it needs no more stubs.
  static bool IsGraphNotCached(const grpc::Status& status) {
    return status.error_code() == grpc::StatusCode::FAILED_PRECONDITION &&
           status.error_details().find("GRAPH_NOT_CACHED") != std::string::npos;
  }

  std::unique_ptr<v1::CostModelService::Stub> stub_;
  std::chrono::milliseconds timeout_;
};

}  // namespace hlorank

#endif  // HLORANK_RANKER_H_
