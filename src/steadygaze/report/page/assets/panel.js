// The panel beside the map, in words and numbers: the point, its proofs, logits, shares. Text only, no HTML.
"use strict";

const SgPanel = (() => {
  const byId = (id) => document.getElementById(id);
  const clamp = (value, low, high) => Math.min(high, Math.max(low, value));

  const MARKS = { circle: "○", triangle: "△", diamond: "◇" };

  function element(tag, text, className) {
    const made = document.createElement(tag);
    if (text !== undefined) made.textContent = text;
    if (className) made.className = className;
    return made;
  }

  // Significant digits without trailing zeros; a real minus sign.
  function number(value, digits = 6) {
    if (value === null || Number.isNaN(value)) return "unknown";
    if (!Number.isFinite(value)) return value > 0 ? "∞" : "−∞";
    // Sums of some thousand numbers: smaller values are rounding.
    if (Math.abs(value) < 1e-12) return "0";
    return String(Number(value.toPrecision(digits))).replace("-", "−");
  }

  // As words.py: the digits of rounding errors say nothing.
  function margin(value, digits) {
    return Math.abs(value) < 1e-6 ? "0" : number(value, digits);
  }

  // A proved bound, rounded outward: a lower bound down, an upper bound up.
  function bound(value, isUpper, digits) {
    let shown = Number(value.toPrecision(digits));
    if (isUpper ? shown < value : shown > value) {
      const step = 10 ** (Number(value.toExponential().split("e")[1]) + 1 - digits);
      shown = Number((shown + (isUpper ? step : -step)).toPrecision(digits));
    }
    return String(shown).replace("-", "−");
  }

  // A share in percent, rounded down, or up for an upper bound (as words.py).
  function share(value, isUpper) {
    if (value === 0 || value === 1) return `${100 * value} %`;
    const percent = Number((100 * value).toPrecision(15));  // without the rounding of the product
    if (percent < 0.01) return `${bound(percent, isUpper, 2)} %`;
    // A few units in the last place may remain.
    const hundredths = isUpper ? Math.ceil(100 * percent - 1e-9) : Math.floor(100 * percent + 1e-9);
    if (!isUpper && hundredths >= 10000) return "99.99 %";
    return hundredths >= 10000 ? "100 %" : `${(hundredths / 100).toFixed(2)} %`;
  }

  // A share with proved bounds (as share_text in words.py).
  function bounds([low, high]) {
    const tight = 1e-6, least = 1e-4, first = share(low, false);
    if (low === 0 && high > 0 && high < tight) return `≤ ${share(high, true)}`;
    if (first === share(high, false) || (high - low < tight && low > least && high < 1)) return first;
    return `${first.replace(" %", "")} to ${share(high, true)}`;
  }

  // The number that a loss stands for, as attention/measures word it.
  function valueText({ measure: { form, k, noAttention } }, loss, digits = 6) {
    if (form === "distance") return number(loss, digits);
    if (loss === null || Number.isNaN(loss)) return "unknown";
    if (loss >= noAttention) return "none: the maps are zero";
    if (form === "percent") return `${number(100 * (1 - loss), digits)} %`;
    if (form === "count") return `${Math.ceil((1 - loss) * k - 1e-6)} of ${k} pixels`;
    return form === "side" ? (loss < 0.5 ? "on the object" : "off the object") : number(1 - loss, digits);
  }

  function against(facts, loss, limit) {
    const isKept = loss <= limit, sign = facts.measure.form === "distance" ? (isKept ? "≤" : ">") : isKept ? "≥" : "<";
    return `${valueText(facts, loss, 5)} ${sign} ${valueText(facts, limit, 5)}`;
  }

  const deltaText = (facts, step) => {
    if (facts.measure.words) return facts.measure.words[step];
    const text = facts.texts[step], value = number(facts.deltas[step], 5);
    return text.endsWith("%") ? `${value} (${text.replace("%", " %")} of the original maps' size)` : value;
  };

  const thetaText = (facts, theta) => {
    const { names, shownAtZero } = facts.domain;
    return names.map((name, axis) => `${name} ${number(theta[axis] + shownAtZero[axis], 5)}`).join(", ");
  };

  // Sentences about the piece of a point: the claim and its proof. The first word is the label.
  function proved(facts, arrays, found, step) {
    if (!found) {
      const why = facts.isPartial ? "The run ended before it reached this point" : "No piece is known here";
      return [{ label: "not reached", text: `${why}: nothing is proved.` }];
    }
    const { piece, unit } = found, isMerged = facts.isMerged;
    const isBox = isMerged ? arrays.isBox[piece] === 1 : found.isBox;
    const place = isMerged ? "at the nearest point of the grid" : isBox ? "on this whole box" : "on this whole piece";
    const how = isBox ? "proved by bounds" : "proved by regions";
    const name = (j) => facts.names[j];
    const lines = [];
    const [low, high] = isMerged ? [] : [arrays.margin[2 * piece], arrays.margin[2 * piece + 1]];
    if (found.label === SG_KEPT) {
      const least = isMerged || !(low > 0) ? "" : `; margin at least ${bound(low, false, 4)}`;
      lines.push({ label: "CR", text: `the label ${name(facts.label)} is kept ${place}, ${how}${least}.` });
    } else if (found.label === SG_LOST) {
      const most = isMerged || !(high < 0) ? "" : `; margin at most ${bound(high, true, 4)}`;
      const to = found.winner < 0 ? "" : ` to ${name(found.winner)}`;
      lines.push({ label: "MR", text: `the label changes${to} ${place}, ${how}${most}.` });
    } else {
      lines.push({ label: "undecided", text: `no proof decides ${place.replace("whole ", "")} whether the label is kept.` });
    }
    if (!facts.isMeasured) {
      lines.push({ label: "not measured", text: "the question is about the label only." });
      return lines;
    }
    const isWhole = step >= arrays.keptFrom[unit] || step < arrays.lostUntil[unit];
    const where = isMerged || isBox ? place : isWhole ? "on this whole region" : "on this part of the region";
    const { measure } = facts, ends = isMerged ? [] : [arrays.reach[2 * unit], arrays.reach[2 * unit + 1]];
    const range = isMerged ? "" : measure.form === "distance" ? `; the inconsistency is ${between(...ends)}` : lossText(facts, ends);
    const [kept, lost, open] = attentionWords(facts, step);
    if (found.attention === SG_KEPT) {
      lines.push({ label: "AR", text: `${kept} ${where}, ${how}${range}.` });
    } else if (found.attention === SG_LOST) {
      lines.push({ label: "IR", text: `${lost} ${where}, ${how}${range}.` });
    } else {
      lines.push({ label: "undecided", text: `no proof decides here ${open}${range}.` });
    }
    return lines;
  }

  // Kept, lost and undecided, for a step of the slider.
  function attentionWords({ measure, deltas }, step) {
    if (measure.kept) return [measure.kept[step], measure.lost[step], `whether ${measure.kept[step]}`];
    const delta = number(deltas[step], 5);
    return [
      `the attention is within δ = ${delta}`, `the attention differs by more than δ = ${delta}`,
      `whether the attention is within δ = ${delta}`,
    ];
  }

  // Proved bounds of the compared number, from those of the loss.
  function lossText({ measure: { form, noun } }, [low, high]) {
    if (form === "side" || form === "count" || !(high <= 1)) return "";
    const factor = form === "percent" ? 100 : 1, unit = form === "percent" ? " %" : "";
    return `; the ${noun} is ${between(factor * (1 - high), factor * (1 - low))}${unit}`;
  }

  function between(low, high) {
    if (!Number.isFinite(high)) return low > 0 ? `at least ${bound(low, false, 5)}` : "not bounded";
    const first = number(low, 5), second = number(high, 5);
    return first === second ? `about ${first}` : `between ${bound(low, false, 5)} and ${bound(high, true, 5)}`;
  }

  function showProved(lines) {
    byId("sg-proved").replaceChildren(...lines.map(({ label, text }) => {
      const line = element("p");
      line.append(element("strong", label, "sg-label"), ` ${text}`);
      return line;
    }));
  }

  function showNumbers(rows) {
    byId("sg-numbers").replaceChildren(...rows.flatMap(([name, text, key]) => {
      const value = element("dd", text);
      if (key) value.dataset.key = key;
      return [element("dt", name), value];
    }));
  }

  // The largest logits, the label's among them, as bars.
  function showLogits(facts, logits, most = 10) {
    const order = Array.from(logits.keys()).sort((a, b) => logits[b] - logits[a]);
    let shown = order.slice(0, most);
    if (!shown.includes(facts.label)) shown = [...shown.slice(0, most - 1), facts.label];
    const low = Math.min(0, ...shown.map((j) => logits[j])), high = Math.max(0, ...shown.map((j) => logits[j]));
    const span = high - low || 1;
    byId("sg-logits").replaceChildren(...shown.map((j) => {
      const row = element("tr", undefined, j === order[0] ? "sg-first" : ""), name = element("th", facts.names[j]);
      name.scope = "row";
      name.title = facts.names[j];
      const bar = element("div", undefined, j === facts.label ? "sg-bar sg-own" : "sg-bar"), cell = element("td");
      bar.style.marginLeft = `${(100 * (Math.min(0, logits[j]) - low)) / span}%`;
      bar.style.width = `${(100 * Math.abs(logits[j])) / span}%`;
      cell.append(bar);
      row.append(name, cell, element("td", number(logits[j], 5), "sg-value"));
      return row;
    }));
  }

  // Colours with their meaning and share, for a view at a step.
  function legend(facts, arrays, view, step) {
    const { measure } = facts, { named, winners, ranked, most, shares } = facts.palette, at = (name) => bounds(facts.areas[name][step]);
    const delta = number(facts.deltas[step], 5), name = (j) => facts.names[j], rows = [];
    const swatch = (colour) => ({ colour });
    if (view === "classification") {
      rows.push([swatch(named.kept), `CR  label kept: ${name(facts.label)}`, at("CR"), "CR"]);
      rows.push([null, "MR  label changed", at("MR"), "MR"]);
      const least = facts.isPartial ? "≥ " : "";
      for (const j of ranked.slice(0, most)) {
        if (shares[j]) rows.push([swatch(winners[j]), `to ${name(j)}`, least + share(shares[j], false), null]);
      }
      const others = ranked.slice(most).reduce((sum, j) => sum + (shares[j] || 0), 0);
      const rest = least + share(Math.min(others, 1), false);
      if (others) rows.push([swatch(winners[ranked[most]]), "to other classes", rest, null]);
      if (shares[-1]) rows.push([swatch(named.changed), "to one class or several", least + share(shares[-1], false), null]);
      rows.push([{ line: named.ink }, "decision boundary", "", null]);
    } else if (view === "attention") {
      const kept = measure.keptRows ? measure.keptRows[step] : `differs by ≤ δ = ${delta}`;
      rows.push([{ shades: arrays.kept }, `AR  ${kept}`, at("AR"), "AR"]);
      rows.push([{ shades: arrays.lost }, `IR  ${measure.lostRow || "differs by more"}`, at("IR"), "IR"]);
      rows.push([{ line: named.threshold }, measure.border, "", null]);
    } else if (view === "joint") {
      for (const [key, text] of Object.entries(facts.jointWords)) rows.push([swatch(named[key]), `${key}  ${text}`, at(key), key]);
      rows.push([{ line: named.ink }, "decision boundary", "", null]);
      rows.push([{ line: named.threshold }, measure.border, "", null]);
    } else {
      const more = facts.largest > facts.top ? ` or more (largest ${number(facts.largest, 4)})` : "";
      rows.push([{ shades: arrays.sequential }, `${measure.lossNoun} from 0 to ${number(facts.top, 4)}${more}`, "", null]);
      const border = measure.form === "distance" ? `inconsistency = δ = ${delta}` : measure.lossBorder;
      rows.push([{ line: named.paper, on: "#3b496c" }, border, "", null]);
    }
    // The undecided share for the view; strips along boundaries are far smaller than this.
    const gap = (name) => facts.areas[name][step][1] - facts.areas[name][step][0];
    const open = { classification: gap("CR"), attention: gap("AR"), joint: facts.areas.undecided[step][1] }[view] || 0;
    const undecided = Math.max(0, open - facts.notReached);
    if (undecided > 1e-6) rows.push([swatch(named.unknown), "undecided", share(Math.min(undecided, 1), true), "undecided"]);
    for (const { text, marker } of facts.marks) rows.push([{ mark: MARKS[marker] }, text, "", null]);
    if (facts.notReached > 0) rows.push([{ hatch: named }, "not reached", share(facts.notReached, true), null]);
    return rows;
  }

  function showLegend(rows) {
    byId("sg-legend").replaceChildren(...rows.map(([look, text, value, key]) => {
      const row = element("li"), mark = element("span", undefined, "sg-swatch");
      const words = element("span", text, "sg-words");
      mark.setAttribute("aria-hidden", "true");
      paintSwatch(mark, look);
      words.title = text;
      const amount = element("span", value, "sg-share");
      if (key) amount.dataset.area = key;
      row.append(mark, words, amount);
      return row;
    }));
  }

  function paintSwatch(mark, look) {
    if (!look) mark.classList.add("sg-empty");
    else if (look.mark) {
      mark.classList.add("sg-mark");
      mark.textContent = look.mark;
    }
    else if (look.colour) mark.style.background = look.colour;
    else if (look.on) {
      mark.style.background = `linear-gradient(${look.on} 5px, ${look.line} 5px 8px, ${look.on} 8px)`;
    } else if (look.line) {
      mark.classList.add("sg-line");
      mark.style.background = look.line;
    } else if (look.hatch) {
      const { notReached, hatch } = look.hatch;
      mark.style.background = `repeating-linear-gradient(135deg, ${hatch} 0 1px, ${notReached} 1px 5px)`;
    } else {
      const stops = [0, 64, 128, 191, 255].map((k) => `rgb(${look.shades.slice(3 * k, 3 * k + 3).join(",")})`);
      mark.style.background = `linear-gradient(90deg, ${stops.join(",")})`;
    }
  }

  return {
    byId, clamp, number, margin, valueText, against, bound, share, bounds, deltaText, thetaText, proved, showProved, showNumbers, showLogits, legend,
    showLegend,
  };
})();
