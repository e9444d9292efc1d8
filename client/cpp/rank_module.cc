// Ranks the compiler's default and, for each configurable instruction, the reversed layout of its output.

#include <cstdlib>
#include <fstream>
#include <iostream>
#include <iterator>

#include "ranker.h"

namespace {

// Returns the column-major layout: 0 to `rank - 1`. XLA's default is row-major: `rank - 1` down to 0.
std::vector<int> ColumnMajor(int rank) {
  std::vector<int> minor_to_major;
  for (int dimension = 0; dimension < rank; ++dimension) minor_to_major.push_back(dimension);
  return minor_to_major;
}

[[noreturn]] void Fail(const grpc::Status& status) {
  std::cerr << "error: " << status.error_message() << " (code " << status.error_code() << ")\n";
  std::exit(EXIT_FAILURE);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: " << argv[0] << " HOST:PORT MODULE, a serialized xla.HloModuleProto or xla.HloProto\n";
    return 2;
  }
  std::ifstream file(argv[2], std::ios::binary);
  if (!file) {
    std::cerr << "error: " << argv[2] << " cannot be read\n";
    return 2;
  }
  hlorank::Graph graph(std::string(std::istreambuf_iterator<char>(file), {}));
  hlorank::Ranker ranker(grpc::CreateChannel(argv[1], grpc::InsecureChannelCredentials()), std::chrono::seconds(10));

  hlorank::v1::PutGraphResponse put;
  if (const grpc::Status status = ranker.Put(graph, put); !status.ok()) Fail(status);

  const int slots = put.configurable_nodes_size();
  std::vector<hlorank::Configuration> configurations(1 + slots, hlorank::Configuration(slots));
  for (int slot = 0; slot < slots; ++slot) {
    configurations[1 + slot][slot][0] = ColumnMajor(put.configurable_nodes(slot).dimensions_size());
  }

  hlorank::v1::RankConfigsResponse response;
  if (const grpc::Status status = ranker.Rank(graph, configurations, response); !status.ok()) Fail(status);

  std::cout << response.model().name() << "@" << response.model().version() << "\n";
  for (int rank = 0; rank < response.ranking_size(); ++rank) {
    const int number = response.ranking(rank);
    std::cout << response.ranking_scores(rank) << "  "
              << (number == 0 ? "the default" : put.configurable_nodes(number - 1).name()) << "\n";
  }
  return EXIT_SUCCESS;
}
