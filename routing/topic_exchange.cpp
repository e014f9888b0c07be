#include "routing/topic_exchange.hpp"

#include <functional>
#include <utility>

#include "base/assert.hpp"
#include "routing/route_scratch.hpp"
#include "routing/table_index.hpp"

namespace stoat::routing {

namespace {

constexpr std::string_view kStar = "*";
constexpr std::string_view kHash = "#";

// Takes the first word off a key. REQUIRES: the key has a word left.
std::string_view next_word(std::string_view& key, bool& last) {
  const std::size_t dot = key.find('.');
  const std::string_view word = key.substr(0, dot);
  last = dot == std::string_view::npos;
  if (!last) key.remove_prefix(dot + 1);
  return word;
}

struct Pattern {
  std::vector<std::string_view> words;
  bool open = false;  // a `#` follows the words
};

// Each run of wildcards is written as its stars and then at most one `#`: "#.#" matches what "#"
// does, and "#.*" what "*.#" does. So after a `#` comes a literal word or the end.
Pattern normal_form(std::string_view binding_key) {
  Pattern pattern;
  for (bool last = binding_key.empty(); !last;) {
    const std::string_view word = next_word(binding_key, last);
    if (word == kHash) {
      pattern.open = true;
      continue;
    }
    if (word != kStar && std::exchange(pattern.open, false)) pattern.words.push_back(kHash);
    pattern.words.push_back(word);
  }
  return pattern;
}

}  // namespace

TopicExchange::TopicExchange(const ExchangeSpec& spec, std::uint32_t number)
    : Exchange(spec, number), nodes_(1) {}

void TopicExchange::match(RouteScratch& scratch) const {
  for (const std::string_view key : scratch.keys()) match_key(key, scratch);
}

// The set of nodes is in two parts: `next` holds those that the words so far lead to exactly, and
// `hashes` the `#` nodes passed on the way, which take any word and so stay to the end.
void TopicExchange::match_key(std::string_view routing_key, RouteScratch& scratch) const {
  RouteScratch::TopicBuffers& buffers = scratch.topic();
  buffers.entered.clear(nodes_.size());
  buffers.hashes.clear();
  buffers.next.clear();
  enter(kRoot, scratch);
  for (bool last = routing_key.empty(); !last;) {
    take_word(next_word(routing_key, last), scratch);
    if (buffers.next.empty() && buffers.hashes.empty()) return;
  }
  for (const NodeId node : buffers.next) nodes_[node].exact.reach_all(scratch);
}

void TopicExchange::take_word(std::string_view text, RouteScratch& scratch) const {
  RouteScratch::TopicBuffers& buffers = scratch.topic();
  std::swap(buffers.current, buffers.next);
  buffers.next.clear();
  const Word word(text);
  // A `#` entered by this word is not there to take it.
  const std::size_t hashes = buffers.hashes.size();
  for (std::size_t i = 0; i < hashes; ++i) {
    const NodeId child = literal_child(buffers.hashes[i], word);
    if (child != kNoNode) enter(child, scratch);
  }
  for (const NodeId node : buffers.current) {
    const Node& from = nodes_[node];
    if (from.star != kNoNode) enter(from.star, scratch);
    const NodeId child = from.words == 0 ? kNoNode : literal_child(node, word);
    if (child != kNoNode) enter(child, scratch);
  }
}

// A node's only way in is from its parent, so that one word enters it at most once. Several words
// of one key can enter it only below a `#`; what is to happen once per key is marked there.
void TopicExchange::enter(NodeId id, RouteScratch& scratch) const {
  RouteScratch::TopicBuffers& buffers = scratch.topic();
  const Node& node = nodes_[id];
  buffers.next.push_back(id);
  if (node.open.empty() && node.hash == kNoNode) return;
  if (node.below_hash && !buffers.entered.insert(id)) return;
  node.open.reach_all(scratch);
  if (node.hash != kNoNode) buffers.hashes.push_back(node.hash);
}

void TopicExchange::insert(Binding& binding) {
  const Pattern pattern = normal_form(binding.key);
  NodeId node = kRoot;
  for (const std::string_view word : pattern.words) {
    const NodeId next = child(node, word);
    node = next != kNoNode ? next : add_child(node, word);
  }
  (pattern.open ? nodes_[node].open : nodes_[node].exact).add(binding);
}

void TopicExchange::erase(Binding& binding) {
  const Pattern pattern = normal_form(binding.key);
  std::vector<Step> path;
  NodeId node = kRoot;
  for (const std::string_view word : pattern.words) {
    const NodeId next = child(node, word);
    STOAT_ASSERT(next != kNoNode, name(), binding.key, word);
    path.push_back({node, word, next});
    node = next;
  }
  (pattern.open ? nodes_[node].open : nodes_[node].exact).remove(binding);
  for (; !path.empty() && nodes_[path.back().child].empty(); path.pop_back()) {
    remove_child(path.back());
  }
}

TopicExchange::NodeId TopicExchange::child(NodeId parent, std::string_view word) const {
  if (word == kStar) return nodes_[parent].star;
  if (word == kHash) return nodes_[parent].hash;
  return literal_child(parent, Word(word));
}

TopicExchange::NodeId TopicExchange::literal_child(NodeId parent, const Word& word) const {
  const auto at = edges_.find(EdgeView{parent, word});
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
  nodes_[added].below_hash = nodes_[parent].is_hash || nodes_[parent].below_hash;
  if (word == kStar) {
    nodes_[parent].star = added;
  } else if (word == kHash) {
    nodes_[parent].hash = added;
    nodes_[added].is_hash = true;
  } else {
    edges_.emplace(Edge{parent, std::string(word)}, added);
    ++nodes_[parent].words;
  }
  return added;
}

void TopicExchange::remove_child(const Step& step) {
  Node& parent = nodes_[step.parent];
  if (step.word == kStar) {
    parent.star = kNoNode;
  } else if (step.word == kHash) {
    parent.hash = kNoNode;
  } else {
    const Word word(step.word);
    edges_.erase(edges_.find(EdgeView{step.parent, word}));
    --parent.words;
  }
  nodes_[step.child] = Node{};
  free_nodes_.push_back(step.child);
}

std::size_t TopicExchange::Word::hash() const {
  if (!hashed_) {
    hash_ = std::hash<std::string_view>{}(text_);
    hashed_ = true;
  }
  return hash_;
}

std::size_t TopicExchange::EdgeHash::operator()(const EdgeView& edge) const {
  return mix_hash(edge.word.hash(), edge.parent);
}

std::size_t TopicExchange::EdgeHash::operator()(const Edge& edge) const {
  return (*this)(EdgeView{edge.parent, Word(edge.word)});
}

}  // namespace stoat::routing
