// The map as pixels: which piece each pixel of the viewport shows, and its colour for a view and a step of δ.
//
// Bokeh draws 50,000 polygons in about 190 ms and takes 250 ms to recolour them (headless Chromium, one core), so they
// are rasterised here into a buffer of piece numbers; a new δ or view is then a lookup. Positions are in t: the domain
// scaled to the unit square. Labels come from the tables of the result; nothing is decided here.
"use strict";

const SG_KEPT = 0, SG_UNKNOWN = 1, SG_LOST = 2;

class SgPlane {
  // Polygons of one plane: points (unsigned 32-bit shares of the unit square), counts of vertices, piece of each.
  constructor(points, counts, piece, held) {
    this.piece = piece;
    this.held = held;
    this.count = counts.length;
    this.points = new Float64Array(points.length);
    for (let i = 0; i < points.length; i++) this.points[i] = points[i] / 4294967295;
    this.starts = new Uint32Array(this.count + 1);
    for (let s = 0; s < this.count; s++) this.starts[s + 1] = this.starts[s] + counts[s];
    this.boxes = new Float64Array(4 * this.count);
    for (let s = 0; s < this.count; s++) {
      let left = 2, low = 2, right = -1, high = -1;
      for (let v = this.starts[s]; v < this.starts[s + 1]; v++) {
        const x = this.points[2 * v], y = this.points[2 * v + 1];
        if (x < left) left = x;
        if (x > right) right = x;
        if (y < low) low = y;
        if (y > high) high = y;
      }
      const at = 4 * s;
      this.boxes[at] = left; this.boxes[at + 1] = low; this.boxes[at + 2] = right; this.boxes[at + 3] = high;
    }
    this.makeBuckets();
  }

  makeBuckets() {
    const side = (this.side = Math.max(1, Math.min(256, Math.ceil(Math.sqrt(this.count / 2)))));
    const counts = new Uint32Array(side * side + 1);
    const each = (visit) => {
      for (let s = 0; s < this.count; s++) {
        const left = this.bucket(this.boxes[4 * s]), right = this.bucket(this.boxes[4 * s + 2]);
        const high = this.bucket(this.boxes[4 * s + 3]);
        for (let y = this.bucket(this.boxes[4 * s + 1]); y <= high; y++) {
          for (let x = left; x <= right; x++) visit(y * side + x, s);
        }
      }
    };
    each((place) => { counts[place + 1]++; });
    for (let i = 0; i < side * side; i++) counts[i + 1] += counts[i];
    const next = counts.slice();
    this.bucketStarts = counts;
    this.members = new Uint32Array(counts[side * side]);
    each((place, s) => { this.members[next[place]++] = s; });
  }

  bucket(at) {
    return Math.max(0, Math.min(this.side - 1, Math.floor(at * this.side)));
  }

  // The polygon in which a point lies deepest, -1 outside of all.
  locate(x, y) {
    const place = this.bucket(y) * this.side + this.bucket(x);
    let best = -1, deepest = -1e-8;
    for (let m = this.bucketStarts[place]; m < this.bucketStarts[place + 1]; m++) {
      const depth = this.depth(this.members[m], x, y);
      if (depth > deepest) { deepest = depth; best = this.members[m]; }
    }
    return best;
  }

  depth(s, x, y) {
    let depth = Infinity;
    const first = this.starts[s], last = this.starts[s + 1];
    for (let v = first; v < last; v++) {
      const w = v + 1 < last ? v + 1 : first, ax = this.points[2 * v], ay = this.points[2 * v + 1];
      const dx = this.points[2 * w] - ax, dy = this.points[2 * w + 1] - ay, length = Math.hypot(dx, dy);
      if (length > 1e-9) depth = Math.min(depth, (dx * (y - ay) - dy * (x - ax)) / length);
    }
    return depth;
  }

  // The mean of the vertices of a polygon.
  centre(s) {
    let x = 0, y = 0;
    const first = this.starts[s], last = this.starts[s + 1];
    for (let v = first; v < last; v++) { x += this.points[2 * v]; y += this.points[2 * v + 1]; }
    return [x / (last - first), y / (last - first)];
  }

  // Writes the piece of every pixel of a window of t into ids (rows count upwards), -1 for none.
  raster([left, right, low, high], width, height, ids) {
    ids.fill(-1);
    const scaleX = width / (right - left), scaleY = height / (high - low);
    const first = new Float64Array(height), last = new Float64Array(height), { points, starts, boxes } = this;
    // Samples beside the centres of pixels, as in report/drawing/raster.py: lines often run exactly through centres.
    const asideX = Math.SQRT1_2, asideY = 1 / Math.sqrt(3);
    for (let s = 0; s < this.count; s++) {
      const at = 4 * s;
      if (boxes[at] > right || boxes[at + 2] < left || boxes[at + 1] > high || boxes[at + 3] < low) continue;
      const bottom = Math.max(0, Math.ceil((boxes[4 * s + 1] - low) * scaleY - asideY));
      const top = Math.min(height, Math.ceil((boxes[4 * s + 3] - low) * scaleY - asideY));
      if (top <= bottom) continue;
      for (let row = bottom; row < top; row++) { first[row] = Infinity; last[row] = -Infinity; }
      const begin = starts[s], end = starts[s + 1];
      for (let v = begin; v < end; v++) {
        const w = v + 1 < end ? v + 1 : begin;
        const isUpward = points[2 * v + 1] <= points[2 * w + 1], a = 2 * (isUpward ? v : w), b = 2 * (isUpward ? w : v);
        const ax = (points[a] - left) * scaleX - asideX, bx = (points[b] - left) * scaleX - asideX;
        const ay = (points[a + 1] - low) * scaleY - asideY, by = (points[b + 1] - low) * scaleY - asideY;
        const slope = (bx - ax) / (by - ay), to = Math.min(top, Math.ceil(by));
        for (let row = Math.max(bottom, Math.ceil(ay)); row < to; row++) {
          const x = ax + (row - ay) * slope;
          if (x < first[row]) first[row] = x;
          if (x > last[row]) last[row] = x;
        }
      }
      const piece = this.piece[s];
      for (let row = bottom; row < top; row++) {
        const from = Math.max(0, Math.ceil(first[row])), to = Math.min(width, Math.ceil(last[row]));
        if (from < to) ids.fill(piece, row * width + from, row * width + to);
      }
    }
  }
}

class SgGrid {
  // A plane of merged areas, known at the pixels of a grid: cells (side × side) count into the areas, 65535 is none.
  constructor(cells, side, held) {
    Object.assign(this, { cells, side, held });
  }

  at(x, y) {
    const clip = (t) => Math.max(0, Math.min(this.side - 1, Math.floor(t * this.side)));
    const area = this.cells[clip(y) * this.side + clip(x)];
    return area === 65535 ? -1 : area;
  }

  locate(x, y) {
    return x < 0 || x > 1 || y < 0 || y > 1 ? -1 : this.at(x, y);
  }

  raster([left, right, low, high], width, height, ids) {
    for (let row = 0; row < height; row++) {
      const y = low + ((row + 0.5) / height) * (high - low);
      for (let column = 0; column < width; column++) {
        ids[row * width + column] = this.locate(left + ((column + 0.5) / width) * (right - left), y);
      }
    }
  }
}

class SgMap {
  // arrays and facts: as packed by report/page/explorer.py.
  constructor(arrays, facts) {
    Object.assign(this, { arrays, facts });
    this.pieces = arrays.unit.length;
    this.samples = arrays.values.shape[1];
    this.planes = new Map();
    this.buffers = {};
    this.setPlane(0);
    this.setStep(facts.chosen);
  }

  setPlane(index) {
    this.index = index;
    const { axes, held } = this.facts.planes[index], { moving } = this.facts;
    this.axes = axes;
    this.held = held;
    if (!this.planes.has(index)) {
      const part = (name) => this.arrays[`${name}.${index}`];
      this.planes.set(index, this.facts.isMerged
        ? new SgGrid(part("cells"), this.facts.gridSide, held)
        : new SgPlane(part("points"), part("counts"), part("piece"), held));
    }
    this.plane = this.planes.get(index);
    // Boundaries that are drawn as lines over merged areas need no lines between pixels.
    const lines = this.arrays[`lines.${index}`];
    this.hasLines = Boolean(lines && lines.length > 0 && lines.length < 4 * this.facts.mostLines);
    this.movingPlace = moving === null ? -1 : axes.indexOf(moving);
    this.movingHeld = moving !== null && held && held.axis === moving ? held.t : null;
  }

  // The slab of every unit at a step, -1 for none: a quick lookup.
  setStep(step) {
    this.step = step;
    const { slabStarts, slabUnit, keptFrom } = this.arrays;
    this.slabOf = new Int32Array(keptFrom.length).fill(-1);
    if (slabStarts) for (let e = slabStarts[step]; e < slabStarts[step + 1]; e++) this.slabOf[slabUnit[e]] = e;
  }

  // Whether the attention is kept on a whole unit at the current step; unknown if a slab divides it.
  attentionOf(unit) {
    if (this.step >= this.arrays.keptFrom[unit]) return SG_KEPT;
    return this.step < this.arrays.lostUntil[unit] ? SG_LOST : SG_UNKNOWN;
  }

  // Whether the attention is kept at a point of the plane, on one side of a slab, or between its ends.
  attentionBeside(entry, x, y) {
    const slabs = this.arrays.slabs, at = slabs.shape[1] * entry, along = at + 4, [first, second] = this.axes;
    let s = slabs[along + first] * x + slabs[along + second] * y;
    if (this.held) s += slabs[along + this.held.axis] * this.held.t;
    if (s >= slabs[at] && s <= slabs[at + 1]) return SG_KEPT;
    return s < slabs[at + 2] || s > slabs[at + 3] ? SG_LOST : SG_UNKNOWN;
  }

  attention(unit, x, y) {
    const whole = this.attentionOf(unit), entry = this.slabOf[unit];
    return whole !== SG_UNKNOWN || entry < 0 ? whole : this.attentionBeside(entry, x, y);
  }

  // The inconsistency as it is shaded: between samples on a line.
  value(unit, t) {
    const { values, spans } = this.arrays, n = this.samples;
    if (n === 1 || t === null) return values[unit * n];
    const low = spans[2 * unit], width = spans[2 * unit + 1] - low;
    const share = width > 0 ? Math.max(0, Math.min(1, (t - low) / width)) * (n - 1) : 0;
    const k = Math.min(n - 2, Math.floor(share)), at = unit * n + k;
    return values[at] + (share - k) * (values[at + 1] - values[at]);
  }

  // The proof at a point (x, y) of the plane: its piece and unit, both labels; null if it was not reached.
  locate(x, y) {
    const found = this.plane.locate(x, y);
    if (found < 0) return null;
    const piece = this.facts.isMerged ? found : this.plane.piece[found], unit = this.arrays.unit[piece];
    return {
      piece, unit, label: this.arrays.label[piece], winner: this.arrays.winner[piece],
      attention: this.attention(unit, x, y), isBox: unit < this.facts.boxes,
      inside: this.facts.isMerged ? null : this.plane.centre(found),
    };
  }

  // Colours (one number per pixel, rows counting upwards) of a window of t; scale × scale samples become one.
  paint(window, width, height, scale, view, hasOutlines) {
    const w = width * scale, h = height * scale, key = [this.index, ...window].join();
    let buffer = this.buffers[scale];
    if (!buffer || buffer.ids.length !== w * h || buffer.width !== w) {
      const [ids, colours, codes] = [new Int32Array(w * h), new Uint32Array(w * h), new Uint16Array(w * h)];
      buffer = this.buffers[scale] = { ids, colours, codes, width: w, key: null };
    }
    if (buffer.key !== key) {
      this.plane.raster(window, w, h, buffer.ids);
      buffer.key = key;
    }
    SgPaint.fill(this, buffer, window, w, h, view);
    SgPaint.lines(this, buffer, w, h, view, hasOutlines);
    return scale === 1 ? buffer.colours.slice() : SgPaint.average(buffer.colours, width, height, scale);
  }
}
