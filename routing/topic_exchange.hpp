#pragma once

#include <boost/unordered/unordered_flat_map.hpp>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "routing/exchange.hpp"

namespace stoat::routing {

// Matches binding keys as patterns of words between dots: `*` stands for exactly one word, `#` for
// zero or more, any number of each. The empty key has no words; neighbouring dots hold an empty
// word, as in RabbitMQ.
//
// Binding keys form a trie over words. Matching reads the routing key once, left to right, with the
// set of trie nodes that the words so far can have led to; a node is in the set at most once, so a
// match costs at most (words of the key) x (nodes), whatever the patterns.
class TopicExchange final : public Exchange {
 public:
  TopicExchange(const ExchangeSpec& spec, std::uint32_t number);

  void match(RouteScratch& scratch) const override;

 private:
  using NodeId = std::uint32_t;
  static constexpr NodeId kRoot = 0;
  static constexpr NodeId kNoNode = 0;  // the root is nobody's child

  struct alignas(64) Node {  // two cache lines
    NodeId star = kNoNode;
    NodeId hash = kNoNode;    // a `#` with more words after it
    std::uint32_t words = 0;  // children by literal word, in edges_
    bool is_hash = false;     // only literal words follow; see normal_form()
    bool below_hash = false;  // some node above is a `#`
    BindingList exact;        // of the patterns that end here
    BindingList open;         // of the patterns that end with a `#` after this

    bool empty() const { return !star && !hash && !words && exact.empty() && open.empty(); }
  };
  struct Step {  // from a node to its child
    NodeId parent;
    std::string_view word;
    NodeId child;
  };
  // A word to look up from any number of nodes, hashed at the first of them.
  class Word {
   public:
    explicit Word(std::string_view text) : text_(text) {}
    std::string_view text() const { return text_; }
    std::size_t hash() const;

   private:
    std::string_view text_;
    mutable std::size_t hash_ = 0;
    mutable bool hashed_ = false;
  };
  struct Edge {
    NodeId parent;
    std::string word;
  };
  struct EdgeView {
    NodeId parent;
    const Word& word;
  };
  struct EdgeHash {
    using is_transparent = void;
    using is_avalanching = void;
    std::size_t operator()(const EdgeView& edge) const;
    std::size_t operator()(const Edge& edge) const;
  };
  struct EdgeEqual {
    using is_transparent = void;
    bool operator()(const Edge& a, const Edge& b) const {
      return a.parent == b.parent && a.word == b.word;
    }
    bool operator()(const EdgeView& a, const Edge& b) const {
      return a.parent == b.parent && a.word.text() == b.word;
    }
  };

  void insert(Binding& binding) override;
  void erase(Binding& binding) override;

  void match_key(std::string_view routing_key, RouteScratch& scratch) const;
  void take_word(std::string_view word, RouteScratch& scratch) const;
  void enter(NodeId node, RouteScratch& scratch) const;

  NodeId child(NodeId parent, std::string_view word) const;
  NodeId literal_child(NodeId parent, const Word& word) const;
  NodeId add_child(NodeId parent, std::string_view word);
  void remove_child(const Step& step);

  std::vector<Node> nodes_;
  std::vector<NodeId> free_nodes_;
  boost::unordered_flat_map<Edge, NodeId, EdgeHash, EdgeEqual> edges_;
};

}  // namespace stoat::routing
