// Sums over attention maps, for the scripts of properties of attention (attention/measures).
"use strict";

// The loss of a map that is zero everywhere, as in attention/measures.
const SG_NO_ATTENTION = 3;

const SgMaps = {
  minus(map, other) { return map.map((value, i) => value - other[i]); },

  // The norm of a map: 1 for the sum of absolute values, 2 for the root of the sum of squares.
  size(map, norm) {
    let sum = 0;
    if (norm === 1) for (const value of map) sum += Math.abs(value);
    else for (const value of map) sum += value * value;
    return norm === 1 ? sum : Math.sqrt(sum);
  },
};
