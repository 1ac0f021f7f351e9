// Methods of the explorer for the link that carries the selected point: #theta=…&view=…&delta=…
"use strict";

const SgLink = {
  hash() {
    const { theta, view, step } = this.state;
    const values = { theta: theta.map((value) => Number(value.toPrecision(12))).join(","), view, delta: this.facts.texts[step] };
    return `#${new URLSearchParams(values)}`;
  },

  writeHash() {
    SgPanel.byId("sg-link").href = this.hash();
    // A report that was only opened keeps its address.
    if (this.isLoaded) history.replaceState(null, "", this.hash());
  },

  readHash() {
    const given = new URLSearchParams(location.hash.slice(1));
    if (!given.has("theta")) return false;
    const theta = given.get("theta").split(",").map(Number), { low, high } = this.facts.domain;
    if (theta.length === this.dimension && theta.every(Number.isFinite)) {
      this.state.theta = theta.map((value, axis) => SgPanel.clamp(value, low[axis], high[axis]));
      const planes = this.facts.planes, t = this.toT(this.state.theta);
      const fitting = planes.findIndex(({ held }) => held && Math.abs(t[held.axis] - held.t) <= 1e-4);
      if (fitting >= 0 && !this.isOn(this.state.plane, t)) this.state.plane = fitting;
    }
    if (this.views.includes(given.get("view"))) this.state.view = given.get("view");
    document.querySelectorAll('input[name="sg-view"]').forEach((input) => { input.checked = input.value === this.state.view; });
    const step = this.facts.texts.indexOf(given.get("delta"));
    if (step >= 0) {
      this.state.step = step;
      this.map.setStep(step);
    }
    return true;
  },

  isOn(plane, t) {
    const { held } = this.facts.planes[plane];
    return !held || Math.abs(t[held.axis] - held.t) <= 1e-4;
  },
};
