// 128-bit integers, where a product or a sum may leave 64 bits before it is checked.
#pragma once

namespace berth {

__extension__ typedef __int128 Int128;
__extension__ typedef unsigned __int128 Uint128;

}  // namespace berth
