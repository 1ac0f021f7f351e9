// One theta through the network, as in Result.at: image, logits, maps, inconsistency. All in float64.
"use strict";

class SgNetwork {
  // facts and arrays: see report/page/network_data.py; classes: the classes whose maps are compared.
  constructor(facts, arrays, label, classes) {
    Object.assign(this, { facts, arrays, label, classes });
    this.size = facts.shape.reduce((product, side) => product * side, 1);
    this.layers = facts.layers;
    this.logitCount = this.layers.flat().reduce((_, step) => step.outputs, this.size);
  }

  // The knot cell of theta: on a knot the cell above it, the first parameter counting slowest.
  cellOf(theta) {
    let cell = 0;
    this.facts.knots.forEach((knots, axis) => {
      let place = 0;
      while (place < knots.length && knots[place] <= theta[axis]) place++;
      cell = cell * (knots.length + 1) + place;
    });
    return cell;
  }

  imageAt(theta) {
    const { pixels, slopes } = this.arrays, n = this.size, cell = this.cellOf(theta);
    const image = pixels.slice(cell * n, (cell + 1) * n);
    theta.forEach((value, axis) => {
      const at = (cell * theta.length + axis) * n;
      for (let i = 0; i < n; i++) image[i] += value * slopes[at + i];
    });
    for (let i = 0; i < n; i++) image[i] = Math.min(1, Math.max(0, image[i]));
    return image;
  }

  // The input of every ReLU layer, then the logits.
  preactivations(image) {
    const results = [];
    let values = image;
    for (const layer of this.layers) {
      for (const step of layer) values = SgSteps.forward(step, this.arrays, values);
      results.push(values);
      values = sgPositive(values);
    }
    return results;
  }

  // Filtered maps of the compared classes, one array each, under a pattern (0 or 1 per neuron): gradients of functions
  // of the logits, whose weights facts.targets lists for every class.
  maps(bits) {
    return this.facts.targets.map((weights) => {
      let row = new Float64Array(this.logitCount);
      for (const [logit, weight] of weights) row[logit] = weight;
      for (let l = this.layers.length - 1; l >= 0; l--) {
        for (let s = this.layers[l].length - 1; s >= 0; s--) {
          row = SgSteps.backward(this.layers[l][s], this.arrays, row);
        }
        if (l > 0) for (let i = 0; i < row.length; i++) row[i] *= bits[l - 1][i];
      }
      return this.filtered(row);
    });
  }

  // Which neurons are active. If a value is only rounding, the sign at a point inside the region decides.
  pattern(values, inside) {
    const noise = this.arrays.noise;
    let first = 0, onKink = 0, doubtful = 0, other = null;
    const bits = values.slice(0, -1).map((layer, l) => {
      const active = new Uint8Array(layer.length);
      for (let i = 0; i < layer.length; i++) active[i] = layer[i] > 0 ? 1 : 0;
      if (noise) {
        for (let i = 0; i < layer.length; i++) {
          if (layer[i] === 0 || Math.abs(layer[i]) > noise[first + i]) continue;
          onKink++;
          if (!inside) continue;
          other = other || this.preactivations(this.imageAt(inside));
          active[i] = other[l][i] > 0 ? 1 : 0;
          if (Math.abs(other[l][i]) <= noise[first + i]) doubtful++;
        }
      }
      first += layer.length;
      return active;
    });
    return { bits, onKink, doubtful: inside ? doubtful : onKink };
  }

  // SgFilters holds the script of every step of the filter; see attention/filters.
  filtered(map) {
    return this.facts.filter.reduce((filtered, step) => SgFilters[step](filtered, this.facts.shape), map);
  }

  expectedAt(theta) {
    const { expected, change } = this.arrays, { moving, cellLows } = this.facts;
    const n = this.size, count = this.classes.length, cell = moving === null ? 0 : this.cellOf(theta);
    return this.classes.map((_, k) => {
      const at = (cell * count + k) * n, map = Float64Array.from(expected.subarray(at, at + n));
      if (moving === null) return map;
      const tau = theta[moving] - cellLows[cell];
      for (let i = 0; i < n; i++) map[i] += tau * change[at + i];
      return map;
    });
  }

  distance(difference) {
    let sum = 0;
    if (this.facts.distance === 1) for (const value of difference) sum += Math.abs(value);
    else for (const value of difference) sum += value * value;
    return this.facts.distance === 1 ? sum : Math.sqrt(sum);
  }

  // Everything about one theta; `inside` is a theta strictly inside its region, or null.
  at(theta, inside) {
    const image = this.imageAt(theta), values = this.preactivations(image);
    const logits = values[values.length - 1], { bits, onKink, doubtful } = this.pattern(values, inside);
    const actual = this.maps(bits), expected = this.expectedAt(theta);
    const difference = actual.map((map, k) => map.map((value, i) => value - expected[k][i]));
    const distances = difference.map((map) => this.distance(map));
    let best = 0, rival = -Infinity;
    logits.forEach((value, j) => {
      if (value > logits[best]) best = j;
      if (j !== this.label) rival = Math.max(rival, value);
    });
    return {
      theta, image, logits, actual, expected, difference, distances, onKink, doubtful,
      label: best, margin: logits[this.label] - rival, inconsistency: distances.reduce((a, b) => a + b, 0),
    };
  }
}

function sgPositive(values) {
  const out = new Float64Array(values.length);
  for (let i = 0; i < values.length; i++) out[i] = values[i] > 0 ? values[i] : 0;
  return out;
}

// The linear steps of src/steadygaze/network/steps.py, forward (with the bias) and backward.
const SgSteps = (() => {
  const forwards = {
    dense(step, arrays, x) {
      const w = arrays[step.weight], b = arrays[step.bias], out = new Float64Array(step.outputs), n = step.inputs;
      for (let i = 0; i < step.outputs; i++) {
        let sum = 0;
        for (let j = 0, at = i * n; j < n; j++) sum += w[at + j] * x[j];
        out[i] = sum + b[i];
      }
      return out;
    },
    sparse(step, arrays, x) {
      const w = arrays[step.weight], b = arrays[step.bias], rows = arrays[step.rows], columns = arrays[step.columns];
      const out = new Float64Array(step.outputs);
      for (let i = 0; i < step.outputs; i++) {
        let sum = 0;
        for (let k = rows[i]; k < rows[i + 1]; k++) sum += w[k] * x[columns[k]];
        out[i] = sum + b[i];
      }
      return out;
    },
    scale(step, arrays, x) {
      const factor = arrays[step.factor], b = arrays[step.bias];
      return Float64Array.from(x, (value, i) => value * factor[i] + b[i]);
    },
    order(step, arrays, x) {
      return Float64Array.from(arrays[step.order], (from) => x[from]);
    },
    conv(step, arrays, x) {
      const out = new Float64Array(step.outputs), b = arrays[step.bias], places = step.rows * step.columns;
      for (let o = 0; o < step.maps; o++) out.fill(b[o], o * places, (o + 1) * places);
      windows(step, arrays[step.weight], (o, source, weight, from, to, stride) => {
        for (let k = 0; from + k < to; k++) out[o + from + k] += weight * x[source + k * stride];
      });
      return out;
    },
  };

  const backwards = {
    dense(step, arrays, r) {
      const w = arrays[step.weight], out = new Float64Array(step.inputs), n = step.inputs;
      for (let i = 0; i < step.outputs; i++) {
        const value = r[i];
        if (value === 0) continue;
        for (let j = 0, at = i * n; j < n; j++) out[j] += value * w[at + j];
      }
      return out;
    },
    sparse(step, arrays, r) {
      const w = arrays[step.weight], rows = arrays[step.rows], columns = arrays[step.columns];
      const out = new Float64Array(step.inputs);
      for (let i = 0; i < step.outputs; i++) {
        if (r[i] === 0) continue;
        for (let k = rows[i]; k < rows[i + 1]; k++) out[columns[k]] += r[i] * w[k];
      }
      return out;
    },
    scale(step, arrays, r) {
      return Float64Array.from(r, (value, i) => value * arrays[step.factor][i]);
    },
    order(step, arrays, r) {
      const out = new Float64Array(step.inputs);
      arrays[step.order].forEach((from, i) => { out[from] = r[i]; });
      return out;
    },
    conv(step, arrays, r) {
      const out = new Float64Array(step.inputs);
      windows(step, arrays[step.weight], (o, source, weight, from, to, stride) => {
        for (let k = 0; from + k < to; k++) out[source + k * stride] += weight * r[o + from + k];
      });
      return out;
    },
  };

  // Calls visit for every weight and row of a convolution: outputs o + from … o + to see inputs from `source` on.
  function windows(step, weight, visit) {
    const [strideY, strideX, dilationY, dilationX, beforeY, beforeX] = step.window, [kh, kw] = step.kernel;
    for (let o = 0, at = 0; o < step.maps; o++) {
      for (let c = 0; c < step.depth; c++) {
        for (let i = 0; i < kh; i++) {
          for (let j = 0; j < kw; j++, at++) {
            const left = j * dilationX - beforeX;
            const from = Math.max(0, Math.ceil(-left / strideX));
            const to = Math.min(step.columns, Math.floor((step.width - 1 - left) / strideX) + 1);
            for (let y = 0; y < step.rows; y++) {
              const v = y * strideY + i * dilationY - beforeY;
              if (v < 0 || v >= step.height || from >= to) continue;
              const source = (c * step.height + v) * step.width + left + from * strideX;
              visit((o * step.rows + y) * step.columns, source, weight[at], from, to, strideX);
            }
          }
        }
      }
    }
  }

  return {
    forward: (step, arrays, x) => forwards[step.kind](step, arrays, x),
    backward: (step, arrays, r) => backwards[step.kind](step, arrays, r),
  };
})();
