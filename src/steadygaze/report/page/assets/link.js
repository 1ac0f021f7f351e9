// Methods of the explorer for the link that carries the selected point: #theta=…&view=…&delta=…
"use strict";

const SgLink = {
  hash() {
    const { theta, view, step } = this.state;
    const place = theta.map((value) => Number(value.toPrecision(12))).join(",");
    return `#${new URLSearchParams({ theta: place, view, delta: this.facts.texts[step] })}`;
  },

  writeHash() {
    SgPanel.byId("sg-link").href = this.hash();
    // The address changes only after an interaction; a page inside another document has none of its own.
    if (this.isLoaded && location.protocol !== "about:") history.replaceState(null, "", this.hash());
  },

  readHash() {
    const given = new URLSearchParams(location.hash.slice(1));
    if (!given.has("theta")) return false;
    const theta = given.get("theta").split(",").map(Number), { low, high } = this.facts.domain;
    if (theta.length === this.dimension && theta.every(Number.isFinite)) {
      this.state.theta = theta.map((value, axis) => SgPanel.clamp(value, low[axis], high[axis]));
      const fitting = this.facts.planes.findIndex((_, plane) => this.isOn(plane, this.state.theta));
      if (fitting >= 0 && !this.isOn(this.state.plane, this.state.theta)) this.state.plane = fitting;
    }
    if (this.views.includes(given.get("view"))) this.state.view = given.get("view");
    document.querySelectorAll('input[name="sg-view"]').forEach((input) => {
      input.checked = input.value === this.state.view;
    });
    const step = this.facts.texts.indexOf(given.get("delta"));
    if (step >= 0) {
      this.state.step = step;
      this.map.setStep(step);
    }
    return true;
  },
};
