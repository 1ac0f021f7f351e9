// The interactive map: state, controls, Bokeh's figure, and the link that carries the selected point.
//
// Tests and readers may use window.steadygaze: `ready` (a promise), `state`, `facts`, and the functions
// `at(theta)` (everything computed about a point), `proved(theta)`, `select(theta)`, `setView(view)`, `setStep(step)`,
// `setPlane(index)`, `areas()` (the shares at the current step), `timings` (milliseconds of the last of each kind).
"use strict";

const SgExplorer = (() => {
  const byId = (id) => document.getElementById(id);
  const read = (id) => JSON.parse(byId(id).textContent);
  const clamp = SgPanel.clamp;

  class Explorer {
    constructor() {
      this.facts = read("sg-facts");
      this.dimension = this.facts.domain.low.length;
      this.views = Array.from(document.querySelectorAll('input[name="sg-view"]'), (input) => input.value);
      const { low, high } = this.facts.domain;
      const start = low.map((end, axis) => (end <= 0 && high[axis] >= 0 ? 0 : end));
      this.state = {
        theta: start, hover: null, view: this.facts.isMeasured ? "joint" : "classification", step: this.facts.chosen,
        plane: this.firstPlane(), shownClass: null, outlines: false,
      };
      this.timings = {};
      this.ready = this.load();
      this.ready.catch((error) => {
        byId("sg-where").textContent = `The interactive map could not be started in this browser (${error.message}).`;
      });
    }

    // The numbers on axes of factors are those that people read: theta is the factor minus 1.
    showFactors() {
      const shown = this.facts.domain.shownAtZero;
      const shift = (axis, by) => {
        const { formatter } = axis;
        formatter.plain = formatter.plain || formatter.doFormat.bind(formatter);
        formatter.doFormat = (ticks, options) => formatter.plain(ticks.map((tick) => tick + by), options);
      };
      if (this.dimension > 1) this.map.axes.forEach((axis, place) => {
        shift([this.figure.below[0], this.figure.left[0]][place], shown[axis]);
      });
      else for (const figure of ["sg-map", "sg-margin", "sg-inconsistency"].map((name) => this.model(name))) {
        if (figure) shift(figure.below[0], shown[0]);
      }
    }

    firstPlane() {
      const planes = this.facts.planes, held = planes.map((plane) => plane.held);
      if (!held[0]) return 0;
      const last = Math.max(...held.map(({ axis }) => axis));
      return this.nearestPlane(last, clamp(0, this.facts.domain.low[last], this.facts.domain.high[last]));
    }

    async load() {
      const arrays = await SgData.unpack(byId("sg-block").textContent, this.facts.places);
      byId("sg-block").remove();
      this.arrays = arrays;
      const part = (prefix) => {
        const own = Object.entries(arrays).filter(([name]) => name.startsWith(prefix));
        return Object.fromEntries(own.map(([name, array]) => [name.slice(prefix.length), array]));
      };
      this.map = new SgMap(arrays, this.facts);
      const { network, label, classes } = this.facts;
      this.network = network ? new SgNetwork(network, part("net."), label, classes) : null;
      this.stored = network ? null : new SgStored(this.facts, part("stored."), this.facts.domain);
      this.state.outlines = !this.facts.isMerged && this.map.pieces <= 1500 && this.dimension > 1;
      await Bokeh.embed.embed_item(read("sg-item"), "sg-figure");
      this.document = Bokeh.documents[Bokeh.documents.length - 1];
      this.figure = this.model("sg-map");
      this.showFactors();
      this.setUpControls();
      this.followFigure();
      this.readHash();
      this.setPlane(this.state.plane);
      this.refresh();
      // Once more when Bokeh has laid its figure out, for the size of the picture.
      await new Promise((done) => requestAnimationFrame(done));
      this.draw();
      this.isLoaded = true;
      return this;
    }

    model(name) {
      return this.document.get_model_by_name(name);
    }

    // Positions: theta ↔ t, and the two coordinates of the plane shown.
    toT(theta) {
      const { low, high } = this.facts.domain;
      return theta.map((value, axis) => (value - low[axis]) / (high[axis] - low[axis]));
    }

    placeOf(theta) {
      const t = this.toT(theta);
      return this.dimension === 1 ? [t[0], 0.5] : this.map.axes.map((axis) => t[axis]);
    }

    thetaAt(x, y) {
      const { low, high } = this.facts.domain, theta = this.state.theta.slice();
      const axes = this.dimension === 1 ? [0] : this.map.axes;
      axes.forEach((axis, place) => { theta[axis] = clamp([x, y][place], low[axis], high[axis]); });
      const held = this.facts.planes[this.state.plane].held;
      if (held) theta[held.axis] = held.value;
      return theta;
    }

    fromT(t) {
      const { low, high } = this.facts.domain;
      return t.map((share, axis) => low[axis] + share * (high[axis] - low[axis]));
    }

    // The proof at theta: its piece, if the plane shown contains it.
    locate(theta) {
      return this.isOn(this.state.plane, theta) ? this.map.locate(...this.placeOf(theta)) : null;
    }

    // Whether a plane contains theta; planes across a third parameter lie just beside its value.
    isOn(plane, theta) {
      const { held } = this.facts.planes[plane];
      return !held || Math.abs(this.toT(theta)[held.axis] - held.t) <= 1e-4;
    }

    insideOf(theta, found) {
      if (!found || !found.inside || found.isBox) return null;
      const t = this.toT(theta);
      if (this.dimension === 1) t[0] = found.inside[0];
      else this.map.axes.forEach((axis, place) => { t[axis] = found.inside[place]; });
      const held = this.facts.planes[this.state.plane].held;
      if (held) t[held.axis] = held.t;
      return this.fromT(t);
    }

    at(theta) {
      if (this.stored) return this.stored.nearest(theta);
      const found = this.locate(theta);
      const point = this.network.at(Array.from(theta), this.insideOf(theta, found));
      if (found && found.isBox) point.doubtful = 0;
      return point;
    }

    proved(theta) {
      return SgPanel.proved(this.facts, this.arrays, this.locate(theta), this.state.step);
    }

    areas() {
      return Object.fromEntries(Object.entries(this.facts.areas).map(([name, rows]) => [name, rows[this.state.step]]));
    }

    // Changes of the state.
    select(theta) {
      const began = performance.now(), { low, high } = this.facts.domain;
      this.state.theta = Array.from(theta, (value, axis) => clamp(Number(value), low[axis], high[axis]));
      this.state.hover = null;
      this.showPoint(true);
      this.markChosen();
      this.writeHash();
      this.timings.select = performance.now() - began;
    }

    setView(view) {
      if (!this.views.includes(view)) return;
      this.state.view = view;
      document.querySelector(`input[name="sg-view"][value="${view}"]`).checked = true;
      this.showLegend();
      this.draw();
      this.writeHash();
    }

    setStep(step) {
      const began = performance.now();
      this.state.step = clamp(Math.round(step), 0, this.facts.deltas.length - 1);
      this.map.setStep(this.state.step);
      this.showDelta();
      this.showLegend();
      this.drawNow();
      this.showPoint(false);
      this.writeHash();
      this.timings.step = performance.now() - began;
    }

    nearestPlane(axis, value) {
      let best = 0, distance = Infinity;
      this.facts.planes.forEach(({ held }, index) => {
        if (held && held.axis === axis && Math.abs(held.value - value) < distance) {
          distance = Math.abs(held.value - value);
          best = index;
        }
      });
      return best;
    }

    setPlane(index) {
      const plane = this.facts.planes[index];
      this.state.plane = index;
      this.map.setPlane(index);
      if (plane.held) {
        const { names, low, high, shownAtZero } = this.facts.domain;
        this.state.theta[plane.held.axis] = plane.held.value;
        [this.figure.x_range, this.figure.y_range].forEach((range, place) => {
          const axis = plane.axes[place];
          const [start, end] = [low[axis], high[axis]];
          range.setv({ start, end, reset_start: start, reset_end: end, bounds: [start, end] });
        });
        this.figure.below[0].axis_label.text = names[plane.axes[0]];
        this.figure.left[0].axis_label.text = names[plane.axes[1]];
        this.showFactors();
        const same = this.planesAcross(plane.held.axis), slider = byId("sg-plane");
        byId("sg-held").value = plane.held.axis;
        slider.max = same.length - 1;
        slider.value = same.indexOf(index);
        const held = SgPanel.number(plane.held.value + shownAtZero[plane.held.axis], 4);
        slider.setAttribute("aria-valuetext", `${names[plane.held.axis]} = ${held}`);
        byId("sg-plane-text").textContent = `= ${held}`;
      }
      this.refresh();
    }

    planesAcross(axis) {
      return this.facts.planes.map((_, index) => index).filter((index) => this.facts.planes[index].held?.axis === axis);
    }

    refresh() {
      this.showDelta();
      this.showLegend();
      this.showMarks();
      this.draw();
      this.markChosen();
      this.showPoint(false);
      this.writeHash();
    }

    // The picture: rasterised for the pixels that Bokeh provides, with four samples for each unless speed matters.
    draw(isQuick = false) {
      const began = performance.now(), { x_range: x, y_range: y } = this.figure;
      const size = this.frameSize(), ratio = window.devicePixelRatio || 1;
      const width = Math.max(1, Math.round(size[0] * ratio)), height = Math.max(1, Math.round(size[1] * ratio));
      const t = (range, axis) => {
        const { low, high } = this.facts.domain, unit = this.dimension === 1 && axis === 1;
        return [range.start, range.end].map((end) => (unit ? end : (end - low[axis]) / (high[axis] - low[axis])));
      };
      const axes = this.dimension === 1 ? [0, 1] : this.map.axes;
      const window_ = [...t(x, axes[0]), ...t(y, axes[1])];
      const scale = !isQuick && ratio < 1.5 && width * height < 1e6 ? 2 : 1;
      const pixels = this.map.paint(window_, width, height, scale, this.state.view, this.state.outlines);
      const source = this.source("sg-picture"), Kind = source.data.image[0].constructor;
      source.data = {
        image: [new Kind(pixels, [height, width])], x: [x.start], y: [y.start],
        dw: [x.end - x.start], dh: [y.end - y.start],
      };
      this.drawLines();
      this.timings.draw = performance.now() - began;
    }

    frameSize() {
      const { width, height } = Bokeh.index.find_one(this.figure).frame.bbox;
      return [width, height];
    }

    source(name) {
      return this.figure.renderers.map((renderer) => renderer.data_source).find((source) => source.name === name);
    }

    // Boundaries over merged areas: those of the label always, those of the attention at the result's own δ.
    drawLines() {
      const index = this.state.plane, lines = this.arrays[`lines.${index}`];
      const key = [index, this.state.view, this.state.step === this.facts.chosen].join();
      if (!lines || this.linesKey === key) return;
      this.linesKey = key;
      const kinds = this.arrays[`lineKinds.${index}`], { named } = this.facts.palette, { view, step } = this.state;
      const axes = this.map.axes, { low, high } = this.facts.domain;
      const columns = { x0: [], y0: [], x1: [], y1: [], colour: [] };
      const isDrawn = [
        view === "classification" || view === "joint", view !== "classification" && step === this.facts.chosen,
      ];
      const place = (share, axis) => low[axis] + share * (high[axis] - low[axis]);
      kinds.forEach((kind, s) => {
        if (!isDrawn[kind]) return;
        columns.x0.push(place(lines[4 * s], axes[0]));
        columns.y0.push(place(lines[4 * s + 1], axes[1]));
        columns.x1.push(place(lines[4 * s + 2], axes[0]));
        columns.y1.push(place(lines[4 * s + 3], axes[1]));
        columns.colour.push(kind === 0 ? named.ink : view === "inconsistency" ? named.paper : named.threshold);
      });
      this.source("sg-lines").data = columns;
    }

    // While the map or the slider moves: a quick picture now, a good one when it rests.
    drawNow() {
      clearTimeout(this.resting);
      this.resting = setTimeout(() => this.draw(), 150);
      this.draw(true);
    }

    drawSoon() {
      if (this.isDue) return;
      this.isDue = true;
      requestAnimationFrame(() => { this.isDue = false; this.drawNow(); });
    }

    showMarks() {
      const shown = this.facts.marks.filter(({ theta }) => this.isOn(this.state.plane, theta));
      const places = shown.map(({ theta }) => this.drawnAt(theta));
      const marker = shown.map((mark) => mark.marker);
      this.source("sg-marks").data = { x: places.map(([x]) => x), y: places.map(([, y]) => y), marker };
    }

    drawnAt(theta) {
      return this.dimension === 1 ? [theta[0], 0.5] : this.map.axes.map((axis) => theta[axis]);
    }

    markChosen() {
      const [x, y] = this.drawnAt(this.state.theta);
      this.source("sg-chosen").data = { x: [x], y: [y] };
      for (const name of ["sg-margin-at", "sg-inconsistency-at"]) {
        const span = this.model(name);
        if (span) span.location = x;
      }
    }

    // The panel of the point under the pointer, or of the selected one.
    showPoint(isTold) {
      const theta = this.state.hover || this.state.theta, began = performance.now();
      const found = this.locate(theta), point = this.at(theta);
      this.cost = performance.now() - began;
      const lines = SgPanel.proved(this.facts, this.arrays, found, this.state.step);
      SgPanel.showProved(lines);
      SgPanel.byId("sg-where").textContent = this.whereText(theta, found, point);
      this.showNumbers(theta, point);
      this.showPictures(point);
      if (!this.state.hover) this.showInputs(theta);
      if (isTold) {
        const { number, thetaText } = SgPanel, said = lines.map(({ label, text }) => `${label}: ${text}`);
        const { noun } = this.facts.measure, value = SgPanel.valueText(this.facts, point.inconsistency, 4);
        const inconsistency = this.facts.isMeasured ? `, ${noun} ${value}` : "";
        const numbers = `predicts ${this.facts.names[point.label]}, margin ${SgPanel.margin(point.margin, 4)}${inconsistency}`;
        byId("sg-live").textContent = `${thetaText(this.facts, theta)}: ${numbers}. ${said.join(" ")}`;
      }
    }

    whereText(theta, found, point) {
      const parts = [this.state.hover ? `Pointer at ${SgPanel.thetaText(this.facts, theta)}` : "Selected point"];
      if (found && !this.facts.isMerged) {
        parts.push(found.isBox ? `box ${found.unit}` : `region ${found.unit - this.facts.boxes}`);
      }
      if (point.stored) parts.push(`${SgStored.WORDS}: ${SgPanel.thetaText(this.facts, point.theta)}`);
      if (point.doubtful) parts.push("a neuron is on its kink here: the maps are uncertain");
      else if (point.onKink) parts.push("on the border of a region: the maps are those inside it");
      return parts.join(" · ");
    }

    showNumbers(theta, point) {
      const { number } = SgPanel, { facts } = this, place = facts.classes.indexOf(this.shownClass(point));
      const rows = [
        ["predicts", facts.names[point.label] + (point.label === facts.label ? " (the label)" : ""), "label"],
        ["margin", SgPanel.margin(point.margin), "margin"],
      ];
      if (facts.isMeasured) {
        const { form, noun, symbol } = facts.measure, delta = facts.deltas[this.state.step];
        rows.push([noun, SgPanel.valueText(facts, point.inconsistency), "inconsistency"]);
        if (form !== "side") rows.push([`against ${symbol}`, SgPanel.against(facts, point.inconsistency, delta), null]);
        if (form === "distance" && facts.classes.length > 1) rows.push(["of this class", number(point.distances[place]), "distance"]);
      }
      SgPanel.showNumbers(rows);
      SgPanel.showLogits(facts, point.logits);
    }

    // The class whose maps are shown: the chosen one, or the label's if it is compared.
    shownClass(point) {
      const all = point.stored ? point.classes : this.facts.classes;
      if (all.includes(this.state.shownClass)) return this.state.shownClass;
      return all.includes(this.facts.label) ? this.facts.label : all[0];
    }

    showPictures(point) {
      const shape = (this.facts.network || this.facts.stored).shape, number = this.shownClass(point);
      const place = (point.stored ? point.classes : this.facts.classes).indexOf(number);
      SgPictures.image(byId("sg-image"), point.image, shape);
      const drawn = point.stored
        ? [point.actual[place], point.expected[place], point.actual[place].map((v, i) => v - point.expected[place][i])]
        : [point.actual, point.expected, point.difference].map((maps) => SgPictures.summed(maps[place], shape));
      const canvases = ["sg-actual", "sg-expected", "sg-difference"].map(byId);
      const top = SgPictures.maps(canvases, drawn, shape, this.arrays.diverging);
      if (point.weights) SgPictures.outline([byId("sg-image"), ...canvases.slice(0, 2)], point.weights, shape);
      byId("sg-scale-low").textContent = SgPanel.number(-top, 3);
      byId("sg-scale-high").textContent = SgPanel.number(top, 3);
      byId("sg-class").value = number;
    }

    showInputs(theta) {
      document.querySelectorAll("#sg-theta input").forEach((input) => {
        const { axis, typing } = input.dataset, value = theta[axis] + this.facts.domain.shownAtZero[axis];
        if (!typing) input.value = Number(value.toPrecision(8));
      });
    }

    showDelta() {
      const slider = byId("sg-step");
      if (!slider) return;
      const text = SgPanel.deltaText(this.facts, this.state.step);
      slider.value = this.state.step;
      slider.setAttribute("aria-valuetext", text);
      byId("sg-delta-text").textContent = text;
      byId("sg-own-delta").disabled = this.state.step === this.facts.chosen;
      const level = this.model("sg-inconsistency-level");
      if (level) level.location = this.facts.deltas[this.state.step];
    }

    showLegend() {
      SgPanel.showLegend(SgPanel.legend(this.facts, this.arrays, this.state.view, this.state.step));
    }
  }

  Object.assign(Explorer.prototype, SgControls, SgLink);
  return { start: () => new Explorer() };
})();
