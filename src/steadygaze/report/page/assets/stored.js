// Points of a network that is too large for the page: the nearest theta stored by report/page/network_data.py.
"use strict";

class SgStored {
  constructor(facts, arrays, domain) {
    Object.assign(this, { facts, arrays, domain });
    this.count = arrays.thetas.shape[0];
  }

  static WORDS = "numbers and pictures below are those of the nearest stored theta";

  nearest(theta) {
    const { low, high } = this.domain, d = theta.length, { thetas } = this.arrays;
    let best = 0, least = Infinity;
    for (let n = 0; n < this.count; n++) {
      let sum = 0;
      for (let i = 0; i < d; i++) sum += ((thetas[n * d + i] - theta[i]) / (high[i] - low[i])) ** 2;
      if (sum < least) { least = sum; best = n; }
    }
    return this.point(best);
  }

  // As SgNetwork.at, but with maps of some classes only, channels summed; `stored` marks that.
  point(n) {
    const { stored, label } = this.facts, [channels, height, width] = stored.shape, size = height * width;
    const row = (name, each) => this.arrays[name].subarray(n * each, (n + 1) * each);
    const d = this.domain.low.length, kinds = stored.classes.length;
    const logits = row("logits", this.arrays.logits.shape[1]);
    const maps = (name) => stored.classes.map((_, k) => {
      const levels = row(name, kinds * size).subarray(k * size, (k + 1) * size);
      return Float64Array.from(levels, (level) => (level - 127) * this.arrays[`${name}Scale`][n * kinds + k]);
    });
    let rival = -Infinity;
    logits.forEach((value, j) => { if (j !== label) rival = Math.max(rival, value); });
    const distances = new Float64Array(this.facts.classes.length).fill(NaN);
    stored.classes.forEach((number, k) => {
      distances[this.facts.classes.indexOf(number)] = this.arrays.distances[n * kinds + k];
    });
    return {
      stored: true, classes: stored.classes, theta: Array.from(row("thetas", d)), logits, distances,
      onKink: 0, doubtful: 0, weights: this.arrays.weights ? row("weights", size) : null,
      image: Float64Array.from(row("images", channels * size), (level) => level / 255),
      actual: maps("actual"), expected: maps("expected"), label: logits.indexOf(Math.max(...logits)),
      margin: logits[label] - rival, inconsistency: this.arrays.inconsistency[n],
    };
  }
}
