// Colours of the pixels of an SgMap: fills by label and inconsistency, lines where labels change, averages.
"use strict";

const SgPaint = (() => {
  const NONE = 65535;  // the code of an uncovered pixel

  const colour = (hex) => {
    const number = parseInt(hex.slice(1), 16);
    return (0xff000000 | ((number & 255) << 16) | (number & 0xff00) | (number >> 16)) >>> 0;
  };

  const shade = (table, share) => {
    const at = 3 * Math.max(0, Math.min(255, Math.round(share * 255)));
    return (0xff000000 | (table[at + 2] << 16) | (table[at + 1] << 8) | table[at]) >>> 0;
  };

  // The colour of label, winner, attention and inconsistency in a view.
  function colouring(map, view) {
    const { palette, deltas, top } = map.facts, { kept, lost, sequential } = map.arrays, delta = deltas[map.step];
    const { unknown, changed, ...named } = palette.named, grey = colour(unknown), other = colour(changed);
    if (view === "classification") {
      const winners = palette.winners.map(colour);
      return (label, winner) => (label === SG_UNKNOWN ? grey : winner < 0 ? other : winners[winner]);
    }
    if (view === "joint") {
      const [a, b, c, d] = ["CR&AR", "CR&IR", "MR&AR", "MR&IR"].map((name) => colour(named[name]));
      const table = [a, grey, b, grey, grey, grey, c, grey, d];
      return (label, winner, attention) => table[3 * label + attention];
    }
    if (view === "inconsistency") {
      return (label, winner, attention, value) =>
        Number.isFinite(value) ? shade(sequential, value / Math.max(top, 1e-300)) : grey;
    }
    return (label, winner, attention, value) =>
      attention === SG_UNKNOWN ? grey
        : attention === SG_KEPT ? shade(kept, delta > 0 ? value / delta : 0)
          : shade(lost, (value - delta) / Math.max(top - delta, 1e-300));
  }

  // A number for label and winner, with room for the attention.
  const code = (label, winner) => 4 * (label === SG_UNKNOWN ? 0 : label === SG_KEPT ? 1 : winner + 3);

  // Writes the colour of every pixel, and a code that differs where a line may be due. Colours of a piece are looked up
  // by its attention; that of a piece with a slab, and shades where inconsistency moves, depend on the pixel.
  function fill(map, { ids, colours, codes }, [left, right, low, high], w, h, view) {
    const { arrays, slabOf } = map, of = colouring(map, view);
    const { unit, label, winner } = arrays, isMoving = map.movingPlace >= 0 && map.samples > 1;
    const isShaded = isMoving && (view === "attention" || view === "inconsistency");
    const table = new Uint32Array(3 * map.pieces), marks = new Uint16Array(3 * map.pieces);
    const states = new Uint8Array(map.pieces), entries = new Int32Array(map.pieces).fill(-1);
    for (let p = 0; p < map.pieces; p++) {
      states[p] = map.attentionOf(unit[p]);
      if (states[p] === SG_UNKNOWN) entries[p] = slabOf[unit[p]];
      const value = map.value(unit[p], map.movingHeld), mark = code(label[p], winner[p]);
      for (let attention = 0; attention < 3; attention++) {
        if (entries[p] < 0 && attention !== states[p]) continue;
        table[3 * p + attention] = of(label[p], winner[p], attention, value);
        marks[3 * p + attention] = mark + attention;
      }
    }
    const { hatch, notReached } = map.facts.palette.named, nothing = [colour(hatch), colour(notReached)];
    const shades = isShaded ? new Shades(map, view) : null;
    const stepX = (right - left) / w, stepY = (high - low) / h, isAcross = map.movingPlace === 0;
    for (let y = 0, i = 0; y < h; y++) {
      const above = low + (y + 0.5) * stepY;
      for (let x = 0; x < w; x++, i++) {
        const p = ids[i];
        if (p < 0) {
          codes[i] = NONE;
          colours[i] = nothing[((x + y) & 15) < 3 ? 0 : 1];
          continue;
        }
        const entry = entries[p], across = left + (x + 0.5) * stepX;
        const attention = entry < 0 ? states[p] : map.attentionBeside(entry, across, above);
        codes[i] = marks[3 * p + attention];
        colours[i] = shades ? shades.of(unit[p], isAcross ? across : above, attention) : table[3 * p + attention];
      }
    }
  }

  // Shades of single pixels, for units whose inconsistency depends on the pixel.
  class Shades {
    constructor(map, view) {
      const { deltas, top, palette } = map.facts, { values, spans, kept, lost, sequential } = map.arrays;
      const whole = (table) => Uint32Array.from({ length: 256 }, (_, level) => shade(table, level / 255));
      const delta = deltas[map.step];
      Object.assign(this, { values, spans, n: map.samples, unknown: colour(palette.named.unknown) });
      this.isPlain = view === "inconsistency";
      this.kept = whole(kept);
      this.lost = whole(this.isPlain ? sequential : lost);
      this.perKept = delta > 0 ? 255 / delta : 0;
      this.offset = this.isPlain ? 0 : delta;
      this.perLost = 255 / Math.max(top - this.offset, 1e-300);
    }

    of(unit, t, attention) {
      const { values, n } = this, low = this.spans[2 * unit], width = this.spans[2 * unit + 1] - low;
      let share = width > 0 ? ((t - low) / width) * (n - 1) : 0;
      share = share < 0 ? 0 : share > n - 1 ? n - 1 : share;
      const k = Math.min(n - 2, share | 0), at = unit * n + k;
      const value = values[at] + (share - k) * (values[at + 1] - values[at]);
      if (value !== value || (attention === SG_UNKNOWN && !this.isPlain)) return this.unknown;
      if (attention === SG_KEPT && !this.isPlain) return this.kept[Math.min(255, value * this.perKept) | 0];
      const level = (value - this.offset) * this.perLost;
      return this.lost[level < 0 ? 0 : level > 255 ? 255 : level | 0];
    }
  }

  // Lines where codes of neighbours differ: between labels, winners, and at the threshold; outlines of units faintly.
  function lines(map, { ids, colours, codes }, w, h, view, hasOutlines) {
    const { unit } = map.arrays, { named } = map.facts.palette;
    const threshold = view === "inconsistency" ? named.paper : named.threshold;
    const inks = [0, 0, named.paper, threshold, named.ink].map((hex) => (hex ? colour(hex) : 0));
    const hasLabels = !map.hasLines && (view === "classification" || view === "joint");
    const hasAttention = view !== "classification" && !(map.hasLines && map.step === map.facts.chosen);
    // 0: no line, 1: faint, 2: another winner, 3: the threshold, 4: the decision boundary; the largest is drawn.
    const between = (i, j) => {
      const a = codes[i], b = codes[j];
      if (a === NONE || b === NONE) return 0;
      if (a !== b) {
        const la = a >> 2, lb = b >> 2, sa = a & 3, sb = b & 3;
        if (hasLabels && la && lb && (la === 1) !== (lb === 1)) return 4;
        if (hasAttention && sa !== SG_UNKNOWN && sb !== SG_UNKNOWN && sa !== sb) return 3;
        if (view === "classification" && la && lb && la !== lb) return 2;
      }
      return hasOutlines && unit[ids[i]] !== unit[ids[j]] ? 1 : 0;
    };
    const put = (i, line) => { colours[i] = line === 1 ? darker(colours[i]) : inks[line]; };
    for (let y = 0, i = 0; y < h; y++) {
      for (let x = 0; x < w; x++, i++) {
        const id = ids[i], own = codes[i];
        if (id < 0) continue;
        const isAtRight = x + 1 < w && (own !== codes[i + 1] || (hasOutlines && id !== ids[i + 1]));
        const isAbove = y + 1 < h && (own !== codes[i + w] || (hasOutlines && id !== ids[i + w]));
        if (!isAtRight && !isAbove) continue;
        const right = isAtRight ? between(i, i + 1) : 0, above = isAbove ? between(i, i + w) : 0;
        const line = Math.max(right, above);
        if (!line) continue;
        // Faint outlines are one sample wide, other lines two.
        put(i, line);
        if (line === 1) continue;
        if (right === line && x > 0 && ids[i - 1] >= 0) put(i - 1, line);
        if (above === line && y > 0 && ids[i - w] >= 0) put(i - w, line);
      }
    }
  }

  const darker = (rgba) => {
    const part = (shift) => Math.round(((rgba >>> shift) & 255) * 0.72) << shift;
    return (0xff000000 | part(16) | part(8) | part(0)) >>> 0;
  };

  function average(colours, width, height, scale) {
    const out = new Uint32Array(width * height), w = width * scale, count = scale * scale;
    for (let y = 0; y < height; y++) {
      for (let x = 0; x < width; x++) {
        let r = 0, g = 0, b = 0;
        for (let v = 0; v < scale; v++) {
          for (let u = 0, at = (y * scale + v) * w + x * scale; u < scale; u++, at++) {
            const rgba = colours[at];
            r += rgba & 255; g += (rgba >> 8) & 255; b += (rgba >> 16) & 255;
          }
        }
        out[y * width + x] = (0xff000000 | (((b / count) | 0) << 16) | (((g / count) | 0) << 8) | (r / count)) >>> 0;
      }
    }
    return out;
  }

  return { fill, lines, average, colour, shade };
})();
