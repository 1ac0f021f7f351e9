// Event handlers of the explorer: controls of the page, pointer and ranges of Bokeh's figures, keys.
"use strict";

const SgControls = {
  setUpControls() {
    document.querySelectorAll('input[name="sg-view"]').forEach((input) => {
      input.checked = input.value === this.state.view;
      input.addEventListener("change", () => this.setView(input.value));
    });
    SgPanel.byId("sg-step")?.addEventListener("input", (event) => this.setStep(Number(event.target.value)));
    SgPanel.byId("sg-own-delta")?.addEventListener("click", () => this.setStep(this.facts.chosen));
    SgPanel.byId("sg-class").addEventListener("change", (event) => {
      this.state.shownClass = Number(event.target.value);
      this.showPoint(false);
    });
    const outlines = SgPanel.byId("sg-outlines");
    outlines.checked = this.state.outlines;
    outlines.parentElement.hidden = this.facts.isMerged || this.dimension === 1;
    outlines.addEventListener("change", () => { this.state.outlines = outlines.checked; this.draw(); });
    SgPanel.byId("sg-held")?.addEventListener("change", (event) => {
      const axis = Number(event.target.value);
      this.setPlane(this.nearestPlane(axis, this.state.theta[axis]));
    });
    SgPanel.byId("sg-plane")?.addEventListener("input", (event) => {
      const held = this.facts.planes[this.state.plane].held;
      this.setPlane(this.planesAcross(held.axis)[Number(event.target.value)]);
    });
    this.setUpInputs();
    SgPanel.byId("sg-focus").addEventListener("keydown", (event) => this.onKey(event));
    window.addEventListener("hashchange", () => { if (this.readHash()) this.setPlane(this.state.plane); });
    SgPictures.scale(SgPanel.byId("sg-scale"), this.arrays.diverging);
    if (this.stored) {
      for (const option of Array.from(SgPanel.byId("sg-class").options)) {
        if (!this.facts.stored.classes.includes(Number(option.value))) option.remove();
      }
    }
    SgPanel.byId("sg-class").parentElement.hidden = SgPanel.byId("sg-class").options.length < 2;
  },

  setUpInputs() {
    SgPanel.byId("sg-theta").addEventListener("submit", (event) => event.preventDefault());
    document.querySelectorAll("#sg-theta input").forEach((input) => {
      const held = () => this.facts.planes[this.state.plane].held;
      input.addEventListener("input", () => { input.dataset.typing = "1"; });
      input.addEventListener("change", () => {
        delete input.dataset.typing;
        const theta = this.state.theta.slice(), axis = Number(input.dataset.axis);
        const value = Number(input.value) - this.facts.domain.shownAtZero[axis];
        if (input.value !== "" && Number.isFinite(value)) theta[axis] = value;
        if (held() && held().axis === axis) this.setPlane(this.nearestPlane(axis, theta[axis]));
        else this.select(theta);
      });
    });
  },

  // Bokeh's figure: pointer, ranges, size.
  followFigure() {
    const names = ["sg-map", "sg-margin", "sg-inconsistency"];
    for (const figure of names.map((name) => this.model(name)).filter(Boolean)) {
      // Bokeh turns two quick clicks into one event of its own, even at different places.
      for (const name of ["tap", "doubletap"]) {
        figure.on_event(name, (event) => this.select(this.thetaAt(event.x, event.y)));
      }
      figure.on_event("mousemove", (event) => this.onHover(event.x, event.y));
      figure.on_event("mouseleave", () => this.onLeave());
    }
    for (const range of [this.figure.x_range, this.figure.y_range]) {
      for (const end of ["start", "end"]) range.properties[end].change.connect(() => this.drawSoon());
    }
    new ResizeObserver(() => this.drawSoon()).observe(SgPanel.byId("sg-figure"));
    SgPanel.byId("sg-figure").addEventListener("pointerleave", () => this.onLeave());
  },

  // If a point takes long to compute, only a click shows it.
  onHover(x, y) {
    const { low, high } = this.facts.domain, axes = this.dimension === 1 ? [0] : this.map.axes;
    const isInside = axes.every((axis, place) => [x, y][place] >= low[axis] && [x, y][place] <= high[axis]);
    if (!isInside) return this.onLeave();
    if (this.cost > 50) return;
    this.state.hover = this.thetaAt(x, y);
    if (this.isHoverDue) return;
    this.isHoverDue = true;
    requestAnimationFrame(() => { this.isHoverDue = false; if (this.state.hover) this.showPoint(false); });
  },

  onLeave() {
    if (!this.state.hover) return;
    this.state.hover = null;
    this.showPoint(false);
  },

  onKey(event) {
    const ranges = [this.figure.x_range, this.figure.y_range], axes = this.dimension === 1 ? [0] : this.map.axes;
    const moves = { ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowUp: [1, 1], ArrowDown: [1, -1] };
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (moves[event.key]) {
      const [place, sign] = moves[event.key];
      if (place >= axes.length) return;
      const theta = this.state.theta.slice(), width = ranges[place].end - ranges[place].start;
      theta[axes[place]] += sign * width * (event.shiftKey ? 0.1 : 0.01);
      this.select(theta);
      this.keepInView();
    } else if (event.key === "+" || event.key === "=" || event.key === "-") {
      this.zoom(event.key === "-" ? 1.5 : 1 / 1.5);
    } else if (event.key === "0") this.zoom(Infinity);
    else if (event.key === "Home") {
      const held = this.facts.planes[this.state.plane].held;
      this.select(this.state.theta.map((value, axis) => (held && held.axis === axis ? value : 0)));
    } else return;
    event.preventDefault();
  },

  // Around the selected point, by a factor; infinite shows everything.
  zoom(factor) {
    const axes = this.dimension === 1 ? [0] : this.map.axes, { low, high } = this.facts.domain;
    axes.forEach((axis, place) => {
      const range = place === 0 ? this.figure.x_range : this.figure.y_range;
      const width = Math.min((range.end - range.start) * factor, high[axis] - low[axis]);
      const start = SgPanel.clamp(this.state.theta[axis] - width / 2, low[axis], high[axis] - width);
      range.setv({ start, end: start + width });
    });
  },

  keepInView() {
    const [x, y] = this.drawnAt(this.state.theta), { x_range, y_range } = this.figure;
    const isIn = (value, range) => value >= range.start && value <= range.end;
    if (!isIn(x, x_range) || (this.dimension > 1 && !isIn(y, y_range))) this.zoom(1);
  },
};
