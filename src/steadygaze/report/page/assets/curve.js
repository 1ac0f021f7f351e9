// An image that is curved in theta, as Perturbed.unclipped and Perturbed.expected: see report/page/network_data.py.
"use strict";

class SgCurve {
  constructor(facts, arrays, shape) {
    Object.assign(this, { facts, arrays, shape });
  }

  // The affine map from a pixel's coordinates to those that it looks up; the last movement comes first.
  source(theta) {
    let total = [[1, 0, 0], [0, 1, 0]];
    for (const [axis, own] of [...SgMovements].reverse()) {
      const rows = own(theta[axis]);
      total = rows.map(([a, b, c]) => [0, 1, 2].map((k) => a * total[0][k] + b * total[1][k] + (k === 2 ? c : 0)));
    }
    return total;
  }

  // Planes of H × W numbers, looked up bilinearly at theta.
  moved(planes, theta) {
    if (!SgMovements.length) return Float64Array.from(planes);
    const [, height, width] = this.shape, [first, second] = this.source(theta), size = height * width;
    const found = new Float64Array(planes.length), isEdge = this.facts.outside === "edge";
    const clamp = (value, most) => Math.min(Math.max(value, 0), most);
    const at = (start, row, column) => {
      if (isEdge) return planes[start + clamp(row, height - 1) * width + clamp(column, width - 1)];
      return row < 0 || row >= height || column < 0 || column >= width ? 0 : planes[start + row * width + column];
    };
    for (let row = 0; row < height; row++) {
      for (let column = 0; column < width; column++) {
        const across = column - (width - 1) / 2, down = row - (height - 1) / 2;
        // Beyond one pixel outside, everything is as there.
        const x = clamp(first[0] * across + first[1] * down + first[2] + (width + 1) / 2, width + 1) - 1;
        const y = clamp(second[0] * across + second[1] * down + second[2] + (height + 1) / 2, height + 1) - 1;
        const left = Math.min(Math.floor(x), width - 1), top = Math.min(Math.floor(y), height - 1);
        for (let start = 0; start < planes.length; start += size) {
          const line = (r) => at(start, r, left) + (x - left) * (at(start, r, left + 1) - at(start, r, left));
          found[start + row * width + column] = line(top) + (y - top) * (line(top + 1) - line(top));
        }
      }
    }
    return found;
  }

  // The image before the clip: every change of light is computed from the moved image.
  image(theta) {
    const start = this.moved(this.arrays.pixels, theta), total = Float64Array.from(start);
    this.facts.lights.forEach(({ axis, parts, isFixed }, number) => {
      const factors = SgFactors[number](theta[axis]);
      parts.forEach((name, place) => {
        const part = isFixed ? this.arrays[`${name}.constant`] : this.part(name, start);
        for (let i = 0; i < total.length; i++) total[i] += factors[place] * part[i];
      });
    });
    return total;
  }

  part(name, pixels) {
    const [constant, rows, columns, weights] = ["constant", "rows", "columns", "weights"].map(
      (what) => this.arrays[`${name}.${what}`],
    );
    return Float64Array.from(constant, (value, i) => {
      let sum = value;
      for (let k = rows[i]; k < rows[i + 1]; k++) sum += weights[k] * pixels[columns[k]];
      return sum;
    });
  }
}
