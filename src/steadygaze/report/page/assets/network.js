// One theta through the network, as in Result.at: image, logits, maps, inconsistency. All in float64.
"use strict";

class SgNetwork {
  // facts and arrays: see report/page/network_data.py; classes: the classes whose maps are compared.
  constructor(facts, arrays, label, classes) {
    Object.assign(this, { facts, arrays, label, classes });
    this.size = facts.shape.reduce((product, side) => product * side, 1);
    this.layers = facts.layers;
    this.neurons = facts.neurons.map((runs) => SgNeurons.unfold(runs, arrays));
    this.aims = facts.aims || this.layers[this.layers.length - 1];
    const path = [...this.layers.slice(0, -1), this.aims];
    this.curve = facts.curve ? new SgCurve(facts.curve, arrays, facts.shape) : null;
    this.aimCount = path.flat().reduce((_, step) => step.outputs, this.size);
  }

  // The knot cell of theta: on a knot the cell above it, the first parameter counting slowest.
  cellOf(theta) {
    let cell = 0;
    this.facts.knots.forEach((knots, axis) => {
      let place = 0;
      while (place < knots.length && knots[place] <= theta[axis]) place++;
      cell = cell * (knots.length + 1) + place;
    });
    // The last cell of the box, or the one before it where the side of the last is negative.
    const [last, ...side] = this.facts.sides[cell];
    if (!side.length) return last;
    return theta.reduce((sum, value, axis) => sum + value * side[axis], side[theta.length]) < 0 ? last - 1 : last;
  }

  // Planes of H × W numbers, moved along with the image where several parameters move it.
  moved(planes, theta) {
    if (this.curve) return this.curve.moved(planes, theta);
    if (this.facts.triangles === null) return Float64Array.from(planes);
    const [first, second, right, below] = this.facts.triangles, [, height, width] = this.facts.shape;
    const i = Math.floor(theta[first]), j = Math.floor(theta[second]), u = theta[first] - i, v = theta[second] - j;
    const beside = u >= v ? [i + 1, j] : [i, j + 1], weights = [1 - Math.max(u, v), Math.abs(u - v), Math.min(u, v)];
    const found = new Float64Array(planes.length), size = height * width;
    [[i, j], beside, [i + 1, j + 1]].forEach(([across, down], corner) => {
      for (let at = 0; at < found.length; at++) {
        const place = at % size, x = (place % width) - right * across, y = Math.floor(place / width) - below * down;
        if (x >= 0 && x < width && y >= 0 && y < height) {
          found[at] += weights[corner] * planes[at - place + y * width + x];
        }
      }
    });
    return found;
  }

  imageAt(theta) {
    const image = this.curve ? this.curve.image(theta) : this.affineAt(theta);
    for (let i = 0; i < image.length; i++) image[i] = Math.min(1, Math.max(0, image[i]));
    return image;
  }

  affineAt(theta) {
    const { pixels, slopes } = this.arrays, n = this.size, cell = this.cellOf(theta);
    const image = pixels.slice(cell * n, (cell + 1) * n);
    theta.forEach((value, axis) => {
      const at = (cell * theta.length + axis) * n;
      for (let i = 0; i < n; i++) image[i] += value * slopes[at + i];
    });
    return image;
  }

  // The input of every layer, then the logits.
  preactivations(image) {
    const results = [];
    let values = image;
    this.layers.forEach((layer, l) => {
      for (const step of layer) values = SgSteps.forward(step, this.arrays, values);
      results.push(values);
      if (l < this.neurons.length) values = SgNeurons.outputs(this.neurons[l], values);
    });
    return results;
  }

  // A map times the image less the method's baseline, if it has one, and filtered.
  finished(map, image) {
    const { baseline } = this.facts;
    return this.filtered(baseline === null ? map : map.map((value, i) => value * (image[i] - baseline)));
  }

  // Filtered maps of the compared classes, one array each, under a pattern (0 or 1 per neuron): gradients of functions
  // of the aims (the logits, unless facts has others), whose weights facts.targets lists for every class.
  maps(bits, image) {
    return this.facts.targets.map((weights) => {
      let row = new Float64Array(this.aimCount);
      for (const [aim, weight] of weights) row[aim] = weight;
      for (let l = this.layers.length - 1; l >= 0; l--) {
        const steps = l === this.layers.length - 1 ? this.aims : this.layers[l];
        for (let s = steps.length - 1; s >= 0; s--) row = SgSteps.backward(steps[s], this.arrays, row);
        if (l > 0) for (let i = 0; i < row.length; i++) row[i] *= bits[l - 1][i];
      }
      return this.finished(row, image);
    });
  }

  // Which neurons are active. If rounding decides a sign or a winner, a point inside the region decides instead.
  pattern(values, inside) {
    const noise = this.arrays.noise;
    let first = 0, onKink = 0, doubtful = 0, other = null;
    const bits = values.slice(0, -1).map((layer, l) => {
      const { relus, windows } = this.neurons[l], active = SgNeurons.bits(this.neurons[l], layer);
      if (noise) {
        const own = noise.subarray(first, first + layer.length);
        const within = () => (other = other || this.preactivations(this.imageAt(inside)))[l];
        for (const [from, to] of relus) {
          for (let i = from; i < to; i++) {
            if (layer[i] === 0 || Math.abs(layer[i]) > own[i]) continue;
            onKink++;
            if (!inside) continue;
            active[i] = within()[i] > 0 ? 1 : 0;
            if (Math.abs(within()[i]) <= own[i]) doubtful++;
          }
        }
        for (const [from, to] of windows) {
          const winner = SgNeurons.winner(layer, from, to), spread = SgNeurons.spread(layer, own, from, to, winner);
          // Dead entries tie at zero everywhere in the region; whichever wins, its value is zero.
          if (spread === null || (spread === 0 && layer[winner] === 0)) continue;
          if (spread > 0) onKink++;
          if (!inside) continue;
          const best = SgNeurons.winner(within(), from, to), left = SgNeurons.spread(within(), own, from, to, best);
          const chosen = SgNeurons.firstNear(within(), own, from, best);
          active[winner] = 0;
          active[chosen] = 1;
          if (spread === 0 && chosen !== winner) onKink++;
          if (left !== null && left > 0) doubtful++;
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

  expectedAt(theta, image) {
    const { expected, change } = this.arrays, { moving, cellLows } = this.facts;
    const n = this.size, count = this.classes.length, cell = moving === null ? 0 : this.cellOf(theta);
    return this.classes.map((_, k) => {
      const at = (cell * count + k) * n, own = expected.subarray(at, at + n);
      const map = this.moved(own, theta);
      if (moving !== null) {
        const tau = theta[moving] - cellLows[cell];
        for (let i = 0; i < n; i++) map[i] += tau * change[at + i];
      }
      // Without a factor, expected maps are stored filtered.
      return this.facts.baseline === null ? map : this.finished(map, image);
    });
  }

  // The weights of the object's mask, moved along with the image; null without a mask.
  weightsAt(theta) {
    const { weights, weightChange } = this.arrays, { moving, cellLows } = this.facts;
    if (!weights) return null;
    const [, height, width] = this.facts.shape, n = height * width;
    if (moving === null) {
      return this.moved(weights.subarray(0, n), theta).map((weight) => Math.min(1, Math.max(0, weight)));
    }
    const cell = this.cellOf(theta), tau = theta[moving] - cellLows[cell], found = new Float64Array(n);
    for (let i = 0; i < n; i++) {
      found[i] = Math.min(1, Math.max(0, weights[cell * n + i] + tau * weightChange[cell * n + i]));
    }
    return found;
  }

  // Everything about one theta; `inside` is a theta strictly inside its region, or null.
  at(theta, inside) {
    const image = this.imageAt(theta), values = this.preactivations(image);
    const logits = values[values.length - 1], { bits, onKink, doubtful } = this.pattern(values, inside);
    const actual = this.maps(bits, image), expected = this.expectedAt(theta, image);
    const difference = actual.map((map, k) => SgMaps.minus(map, expected[k])), weights = this.weightsAt(theta);
    const distances = difference.map((map) => SgMaps.size(map, this.facts.distance));
    let best = 0, rival = -Infinity;
    logits.forEach((value, j) => {
      if (value > logits[best]) best = j;
      if (j !== this.label) rival = Math.max(rival, value);
    });
    return {
      theta, image, logits, actual, expected, difference, distances, onKink, doubtful, weights,
      label: best, margin: logits[this.label] - rival,
      inconsistency: SgMeasure.loss(actual, expected, weights, this.facts),
    };
  }
}

// How the neurons of a layer are decided: see src/steadygaze/network/layers.py.
const SgNeurons = {
  // Runs of neurons of one kind as ranges [from, to): of ReLUs, of carried values, of single windows.
  unfold(runs, arrays) {
    const found = { relus: [], carried: [], windows: [] };
    let at = 0;
    for (const { kind, count, each, sizes } of runs) {
      const end = at + count;
      if (kind === "windows") {
        for (let w = 0; at < end; w++) {
          const size = each || arrays[sizes][w];
          found.windows.push([at, at + size]);
          at += size;
        }
      } else found[kind === "relu" ? "relus" : "carried"].push([at, end]);
      at = end;
    }
    return found;
  },
  // The first of the largest entries.
  winner(values, from, to) {
    let best = from;
    for (let i = from + 1; i < to; i++) if (values[i] > values[best]) best = i;
    return best;
  },
  // How far the farthest entry that rounding may let win is below the winner; null if there is none.
  spread(values, noise, from, to, winner) {
    let widest = null;
    for (let i = from; i < to; i++) {
      const gap = values[winner] - values[i];
      if (i !== winner && gap <= noise[winner] + noise[i]) widest = Math.max(widest, gap);
    }
    return widest;
  },
  // The first entry that rounding may let win.
  firstNear(values, noise, from, winner) {
    for (let i = from; i < winner; i++) if (values[winner] - values[i] <= noise[winner] + noise[i]) return i;
    return winner;
  },
  bits({ relus, carried, windows }, values) {
    const active = new Uint8Array(values.length);
    for (const [from, to] of relus) for (let i = from; i < to; i++) active[i] = values[i] > 0 ? 1 : 0;
    for (const [from, to] of carried) active.fill(1, from, to);
    for (const [from, to] of windows) active[this.winner(values, from, to)] = 1;
    return active;
  },
  outputs(neurons, values) {
    const active = this.bits(neurons, values);
    return values.map((value, i) => (active[i] ? value : 0));
  },
};

// The linear steps of src/steadygaze/network/steps.py, forward (with the bias) and backward.
const SgSteps = (() => {
  // `change` of `count` values after the first `step.before`; the values around them stay as they are.
  const around = (step, values, count, change) => {
    const end = step.before + count, changed = change(values.subarray(step.before, end));
    const out = new Float64Array(values.length - count + changed.length);
    out.set(values.subarray(0, step.before));
    out.set(changed, step.before);
    out.set(values.subarray(end), step.before + changed.length);
    return out;
  };

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
        for (let k = rows[i]; k < rows[i + 1]; k++) sum += (w ? w[k] : 1) * x[columns[k]];
        out[i] = b ? sum + b[i] : sum;
      }
      return out;
    },
    part(step, arrays, x) {
      return around(step, x, step.inner.inputs, (values) => forward(step.inner, arrays, values));
    },
    arrange(step, arrays, x) {
      const out = new Float64Array(step.outputs);
      let at = 0;
      for (const [from, to] of step.slices) {
        out.set(x.subarray(from, to), at);
        at += to - from;
      }
      return out;
    },
    sum(step, arrays, x) {
      const out = new Float64Array(step.outputs);
      step.signs.forEach((sign, m) => {
        for (let i = 0, at = m * step.outputs; i < step.outputs; i++) out[i] += sign * x[at + i];
      });
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
        for (let k = rows[i]; k < rows[i + 1]; k++) out[columns[k]] += w ? r[i] * w[k] : r[i];
      }
      return out;
    },
    part(step, arrays, r) {
      return around(step, r, step.inner.outputs, (values) => backward(step.inner, arrays, values));
    },
    arrange(step, arrays, r) {
      const out = new Float64Array(step.inputs);
      let at = 0;
      for (const [from, to] of step.slices) for (let i = from; i < to; i++) out[i] += r[at++];
      return out;
    },
    sum(step, arrays, r) {
      const out = new Float64Array(step.inputs);
      step.signs.forEach((sign, m) => {
        for (let i = 0, at = m * step.outputs; i < step.outputs; i++) out[at + i] = sign * r[i];
      });
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

  function forward(step, arrays, x) { return forwards[step.kind](step, arrays, x); }
  function backward(step, arrays, r) { return backwards[step.kind](step, arrays, r); }
  return { forward, backward };
})();
