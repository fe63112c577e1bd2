#include "model/resources.h"

namespace berth::model {

void ResourceList::add(std::string_view name, int64_t amount) {
  int64_t& mine = slot(name);
  if (__builtin_add_overflow(mine, amount, &mine)) mine = INT64_MAX;
}

}  // namespace berth::model
