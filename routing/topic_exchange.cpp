#include "routing/topic_exchange.hpp"

#include <algorithm>

#include "base/assert.hpp"
#include "routing/route_scratch.hpp"

namespace stoat::routing {

namespace {

constexpr std::string_view kStarText = "*";
constexpr std::string_view kHashText = "#";

// Calls take(word) for each word of a key.
template <class Take>
void for_each_word(std::string_view key, Take take) {
  if (key.empty()) return;
  for (;;) {
    const std::size_t dot = key.find('.');
    take(key.substr(0, dot));
    if (dot == std::string_view::npos) return;
    key.remove_prefix(dot + 1);
  }
}

}  // namespace

TopicExchange::TopicExchange(const ExchangeSpec& spec, std::uint32_t number)
    : Exchange(spec, number), nodes_(1) {}

void TopicExchange::match(RouteScratch& scratch) const {
  for (const std::string_view key : scratch.keys()) match_key(key, scratch);
}

void TopicExchange::match_key(std::string_view routing_key, RouteScratch& scratch) const {
  RouteScratch::TopicBuffers& buffers = scratch.topic();
  buffers.entered.clear(nodes_.size());
  buffers.next.clear();
  enter(kRoot, scratch);
  for_each_word(routing_key, [&](std::string_view word) {
    std::swap(buffers.current, buffers.next);
    buffers.next.clear();
    if (buffers.current.empty()) return;
    buffers.entered.clear(nodes_.size());
    const WordId id = find_word(word);
    for (const NodeId node : buffers.current) advance(node, id, scratch);
  });
  for (const NodeId node : buffers.next) nodes_[node].bindings.reach_all(scratch);
}

void TopicExchange::advance(NodeId node, WordId word, RouteScratch& scratch) const {
  const Node& from = nodes_[node];
  if (from.is_hash) enter(node, scratch);
  if (from.star != kNoNode) enter(from.star, scratch);
  if (from.words == 0 || word == kUnknownWord) return;
  if (const auto at = edges_.find(edge(node, word)); at != edges_.end()) enter(at->second, scratch);
}

// Puts a node into the set of the next word, with the `#` below it that may take no word at all.
// Only a `#` node can be entered twice (it stays in the set by itself, and its parent leads to it):
// any other one has its parent as the only way in.
void TopicExchange::enter(NodeId node, RouteScratch& scratch) const {
  RouteScratch::TopicBuffers& buffers = scratch.topic();
  if (nodes_[node].is_hash && !buffers.entered.insert(node)) return;
  buffers.next.push_back(node);
  const NodeId hash = nodes_[node].hash;
  if (hash != kNoNode && buffers.entered.insert(hash)) buffers.next.push_back(hash);
}

// The words of a binding key, each run of wildcards written as its stars and then at most one `#`:
// "#.#" matches what "#" does and "#.*" what "*.#" does. So a `#` has neither `#` nor `*` below it.
std::vector<std::string_view> TopicExchange::normal_form(std::string_view binding_key) {
  std::vector<std::string_view> words;
  bool hash_pending = false;
  for_each_word(binding_key, [&](std::string_view word) {
    if (word == kHashText) {
      hash_pending = true;
      return;
    }
    if (word != kStarText && hash_pending) {
      words.push_back(kHashText);
      hash_pending = false;
    }
    words.push_back(word);
  });
  if (hash_pending) words.push_back(kHashText);
  return words;
}

void TopicExchange::insert(Binding& binding) {
  NodeId node = kRoot;
  for (const std::string_view word : normal_form(binding.key)) {
    const NodeId next = child(node, word);
    node = next != kNoNode ? next : add_child(node, word);
  }
  nodes_[node].bindings.add(binding);
}

void TopicExchange::erase(Binding& binding) {
  std::vector<Step> path;
  NodeId node = kRoot;
  for (const std::string_view word : normal_form(binding.key)) {
    const NodeId next = child(node, word);
    STOAT_ASSERT(next != kNoNode, name(), binding.key, word);
    path.push_back({node, word, next});
    node = next;
  }
  nodes_[node].bindings.remove(binding);
  for (; !path.empty() && nodes_[path.back().child].empty(); path.pop_back()) {
    remove_child(path.back());
  }
}

TopicExchange::WordId TopicExchange::find_word(std::string_view word) const {
  const auto at = words_.find(word);
  return at == words_.end() ? kUnknownWord : at->second.id;
}

TopicExchange::NodeId TopicExchange::child(NodeId parent, std::string_view word) const {
  if (word == kStarText) return nodes_[parent].star;
  if (word == kHashText) return nodes_[parent].hash;
  const auto at = edges_.find(edge(parent, find_word(word)));
  return at == edges_.end() ? kNoNode : at->second;
}

TopicExchange::NodeId TopicExchange::add_child(NodeId parent, std::string_view word) {
  NodeId added;
  if (free_nodes_.empty()) {
    added = static_cast<NodeId>(nodes_.size());
    nodes_.emplace_back();
  } else {
    added = free_nodes_.back();
    free_nodes_.pop_back();
  }
  if (word == kStarText) {
    nodes_[parent].star = added;
  } else if (word == kHashText) {
    nodes_[parent].hash = added;
    nodes_[added].is_hash = true;
  } else {
    Word& entry = words_[std::string(word)];
    if (entry.uses++ == 0) {
      if (free_words_.empty()) {
        entry.id = next_word_++;
      } else {
        entry.id = free_words_.back();
        free_words_.pop_back();
      }
    }
    edges_.emplace(edge(parent, entry.id), added);
    ++nodes_[parent].words;
  }
  return added;
}

void TopicExchange::remove_child(const Step& step) {
  Node& parent = nodes_[step.parent];
  if (step.word == kStarText) {
    parent.star = kNoNode;
  } else if (step.word == kHashText) {
    parent.hash = kNoNode;
  } else {
    const auto word = words_.find(step.word);
    STOAT_ASSERT(word != words_.end(), name(), step.word);
    edges_.erase(edge(step.parent, word->second.id));
    --parent.words;
    if (--word->second.uses == 0) {
      free_words_.push_back(word->second.id);
      words_.erase(word);
    }
  }
  nodes_[step.child] = Node{};
  free_nodes_.push_back(step.child);
}

}  // namespace stoat::routing
