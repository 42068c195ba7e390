"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const SVG = "http" + "://www.w3.org/2000/svg";

  // ---- numbers -------------------------------------------------------------------------------
  const number = (value, digits = 4) => {
    if (!Number.isFinite(value)) return "–";
    if (value === 0) return "0";
    const size = Math.abs(value);
    let text;
    if (size >= 1e-4 && size < 1e6) {
      const places = Math.max(digits - 1 - Math.floor(Math.log10(size)), 0);
      text = value.toFixed(Math.min(places, 20));
      if (text.includes(".")) text = text.replace(/\.?0+$/, "");
    } else {
      text = value.toExponential(digits - 1).replace(/\.?0+e/, "e").replace("e+", "e");
    }
    return text.replaceAll("-", "−");
  };
  const signed = (value, digits = 4) => (value > 0 ? "+" : "") + number(value, digits);
  // Values in a column have the same number of decimals: enough for a thousandth of their span.
  const inSpan = (value, span) => {
    const places = 3 - Math.floor(Math.log10(span) + 0.01);
    if (!(span > 0) || places > 8 || Math.abs(value) >= 1e6) return number(value, 3);
    return value.toFixed(Math.max(places, 0)).replace(/^-(0\.?0*)$/, "$1").replace("-", "−");
  };
  const make = (name, properties = {}, ...children) => {
    const element = Object.assign(document.createElement(name), properties);
    element.append(...children);
    return element;
  };
  // Names may break after an underscore.
  const breakable = (text) => text.split("_").flatMap((part, i) => (i ? ["_", document.createElement("wbr"), part] : [part]));
  const draw = (name, attributes) => {
    const element = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    return element;
  };

  // ---- light and dark ------------------------------------------------------------------------
  const themes = { auto: "system", light: "light", dark: "dark" };
  const button = document.getElementById("theme");
  const setTheme = (theme) => {
    if (theme === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme;
    button.dataset.theme = theme;
    button.textContent = `Theme: ${themes[theme]}`;
  };
  setTheme("auto");
  button.hidden = false;
  button.addEventListener("click", () => {
    const names = Object.keys(themes);
    setTheme(names[(names.indexOf(button.dataset.theme) + 1) % names.length]);
  });

  // Tables that are wider than the page can be scrolled with the keyboard.
  const reachable = () => {
    for (const box of document.querySelectorAll(".scroll")) {
      if (box.scrollWidth > box.clientWidth + 1) {
        box.tabIndex = 0;
        box.setAttribute("role", "group");
        box.setAttribute("aria-label", box.querySelector("caption")?.textContent || "Table");
      }
    }
  };
  reachable();
  window.addEventListener("resize", reachable);
  document.addEventListener("toggle", reachable, true);

  // ---- values under the pointer --------------------------------------------------------------
  const place = (value, [low, high, log]) =>
    log ? Math.log(value / low) / Math.log(high / low) : (value - low) / (high - low);
  const nearest = (values, axis, share) => {
    let best = 0;
    values.forEach((value, i) => {
      if (Math.abs(place(value, axis) - share) < Math.abs(place(values[best], axis) - share)) best = i;
    });
    return best;
  };

  for (const plot of document.querySelectorAll(".plot")) {
    const figure = data.figures[plot.dataset.figure];
    if (!figure) continue;
    const chart = plot.querySelector("svg.chart");
    const cursor = chart.querySelector(":scope > .cursor");
    const readout = document.getElementById(`read-${plot.dataset.figure}`);
    const [left, top, width, height] = figure.frame;
    const [xAxis, yAxis] = figure.axes;
    const value = figure.signed ? signed : number;
    let at = null;
    plot.tabIndex = 0;
    plot.setAttribute("role", "group");
    plot.setAttribute("aria-label", `${chart.getAttribute("aria-label")}; arrow keys show values`);

    const show = () => {
      cursor.replaceChildren();
      readout.textContent = "";
      if (at === null) return;
      const [i, j] = at;
      const [xName, yName, zName] = figure.names;
      const y = figure.kind === "map" ? figure.y[j] : figure.y[i];
      const px = left + width * place(figure.x[i], xAxis);
      const py = top + height * (1 - place(y, yAxis));
      if (figure.kind !== "points") cursor.append(draw("line", { x1: px, x2: px, y1: top, y2: top + height }));
      if (figure.kind === "map") cursor.append(draw("line", { x1: left, x2: left + width, y1: py, y2: py }));
      cursor.append(draw("circle", { cx: px, cy: py, r: 5 }));
      readout.textContent = figure.kind === "map"
        ? `${xName} ${number(figure.x[i])}, ${yName} ${number(y)}: ${zName} ${value(figure.values[i][j])}`
        : `${xName} ${number(figure.x[i])}: ${yName} ${value(y)}`;
    };
    const find = (event) => {
      const box = chart.getBoundingClientRect();
      const unit = chart.viewBox.baseVal.width / box.width;
      const x = ((event.clientX - box.left) * unit - left) / width;
      const y = 1 - ((event.clientY - box.top) * unit - top) / height;
      if (figure.kind === "map") at = [nearest(figure.x, xAxis, x), nearest(figure.y, yAxis, y)];
      else if (figure.kind === "curve") at = [nearest(figure.x, xAxis, x), 0];
      else {
        let best = Infinity;
        figure.x.forEach((value, i) => {
          const gap = Math.hypot((place(value, xAxis) - x) * width, (place(figure.y[i], yAxis) - y) * height);
          if (gap < best) { best = gap; at = [i, 0]; }
        });
      }
      show();
    };
    // Points are stepped through from left to right.
    const order = figure.x.map((_, i) => i);
    if (figure.kind === "points") order.sort((a, b) => figure.x[a] - figure.x[b]);
    const step = (dx, dy) => {
      if (at === null) at = [order[Math.floor(order.length / 2)], Math.floor((figure.y.length || 1) / 2)];
      else {
        const i = order.indexOf(at[0]) + dx;
        at = [order[Math.max(0, Math.min(order.length - 1, i))], Math.max(0, Math.min(figure.y.length - 1, at[1] + dy))];
      }
      show();
    };
    plot.addEventListener("pointermove", find);
    plot.addEventListener("pointerdown", find);
    plot.addEventListener("pointerleave", () => { at = null; show(); });
    plot.addEventListener("blur", () => { at = null; show(); });
    plot.addEventListener("keydown", (event) => {
      const moves = { ArrowLeft: [-1, 0], ArrowRight: [1, 0] };
      if (figure.kind === "map") Object.assign(moves, { ArrowUp: [0, 1], ArrowDown: [0, -1] });
      if (!(event.key in moves)) return;
      event.preventDefault();
      step(...moves[event.key]);
    });
  }

  // ---- the model -----------------------------------------------------------------------------
  const model = data.what_if;
  const panel = document.getElementById("what-if");
  if (!model || !panel) return;

  // Activations times their coefficients, from the table in harfe/features/activations.py.
  const functions = {/* activations */};
  const phi = functions[model.activation];
  const clipped = (value, input) => {
    const [low, high] = input.clip;
    if (low !== null && value < low) return low;
    return high !== null && value > high ? high : value;
  };
  const warps = {
    log: (x) => Math.log(x),
    asinh: (x, { centre, scale }) => Math.asinh((x - centre) / scale),
    // Linear between knots, constant beyond them.
    rank: (x, { knots, values }) => {
      let i = 0;
      while (i < knots.length - 2 && x >= knots[i + 1]) i += 1;
      const share = (x - knots[i]) / (knots[i + 1] - knots[i]);
      return values[i] + Math.max(0, Math.min(1, share)) * (values[i + 1] - values[i]);
    },
  };
  // What the sines see of a value.
  const mapped = (value, input) => {
    const x = clipped(value, input);
    return input.warp === null ? x : warps[input.warp.kind](x, input.warp);
  };
  const feature = ([indices, weights, phase, a, b], x) => {
    let z = phase;
    for (let k = 0; k < indices.length; k += 1) z += weights[k] * x[indices[k]];
    return phi(z, a, b);
  };
  // Features that use each input, for its profile.
  const users = model.inputs.map((_, i) => model.features.filter(([indices]) => indices.includes(i)));
  const values = model.inputs.map(() => 0);

  // The prediction is a sum of components of waves, or of terms as fitted.
  const adds = model.adds;
  const nameOf = (set) => set.map((i) => model.inputs[i].name).join(" : ") || "constant";
  const times = ([a, b], [c, d]) => [a * c - b * d, a * d + b * c];
  const components = (x) => {
    const sums = adds.sets.map(() => 0);
    model.features.forEach(([indices, weights, phase, a, b = 0], j) => {
      let amplitude = times(adds.turn, [Math.cos(phase), Math.sin(phase)]);
      amplitude = times(amplitude, [a, -b]);
      const waves = indices.map((i, k) => [Math.cos(weights[k] * x[i]), Math.sin(weights[k] * x[i])]);
      adds.owners[j].forEach((owner, before) => {
        let product = amplitude;
        adds.means[j].forEach((mean, k) => {
          const inside = ((before + 1) >> k) & 1;
          product = times(product, inside ? [waves[k][0] - mean[0], waves[k][1] - mean[1]] : mean);
        });
        sums[owner] += product[0];
      });
    });
    return sums;
  };
  const terms = (x) => adds.features.map((places, k) =>
    places.reduce((sum, j) => sum + feature(model.features[j], x), -adds.means[k]));
  const parts = adds.kind === "components" ? components : terms;

  // With a link, the sum is on its scale; the prediction is the mean over the residuals.
  const link = model.link;
  const unbend = (eta, power) => Math.expm1(power ? Math.log1p(power * Math.max(eta, 0)) / power : Math.max(eta, 0));
  const inverse = (sum) => {
    const eta = Math.min(Math.max(sum, link.lower), link.upper);
    if (link.kind === "log") return Math.exp(eta);
    return link.centre + link.unit * (unbend(eta, link.power) - unbend(-eta, 2 - link.power));
  };
  const predicted = (sum) => {
    if (!link) return sum;
    if (link.kind === "log") return link.factor * inverse(sum);
    return link.shifts.reduce((total, shift) => total + inverse(sum + shift), 0) / link.shifts.length;
  };

  const evaluate = () => {
    const x = values.map((value, i) => mapped(value, model.inputs[i]));
    const sum = model.features.reduce((sum, one) => sum + feature(one, x), model.intercept);
    return { x, sum, prediction: predicted(sum) };
  };

  // ---- its controls --------------------------------------------------------------------------
  const levelOf = new Map();
  model.choices.forEach((choice) => choice.inputs.forEach((i) => { if (i !== null) levelOf.set(i, choice); }));
  const controls = [];
  const refreshers = [];
  const profiles = [];
  let waiting = false;
  const changed = () => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => { waiting = false; refresh(); });
  };

  // Round to what a slider can set: a thousandth of the range.
  const settled = (value, input) => {
    if (input.whole) return Math.round(value);
    if (input.upper === input.lower) return value;
    const unit = 10 ** Math.floor(Math.log10((input.upper - input.lower) / 1000) + 0.01);
    return Number((Math.round(value / unit) * unit).toPrecision(12));
  };

  const addSlider = (i) => {
    const input = model.inputs[i];
    const id = `in-${i}`;
    const constant = input.lower === input.upper;
    const end = (value) => (input.whole ? number(value) : inSpan(value, input.upper - input.lower));
    const slider = make("input", { type: "range", id: `${id}-slider`, min: input.lower, max: input.upper, step: input.whole ? 1 : "any", disabled: constant });
    slider.setAttribute("aria-label", `${input.name}, slider`);
    const field = make("input", { type: "number", id, step: "any" });
    const chart = draw("svg", { class: "profile", viewBox: "0 0 100 34", preserveAspectRatio: "none", "aria-hidden": "true" });
    const curve = draw("path", {});
    const dot = draw("svg", { class: "dot", overflow: "visible" });
    dot.append(draw("circle", { r: 3.5 }));
    chart.append(draw("rect", { width: 100, height: 34, rx: 2 }), curve);
    const holder = draw("svg", { class: "profile", "aria-hidden": "true" });
    chart.setAttribute("width", "100%");
    chart.setAttribute("height", "100%");
    holder.append(chart, dot);
    const row = make("div", { className: "input" }, make("label", { htmlFor: id }, ...breakable(input.name)), slider, field, holder,
      make("div", { className: "ends" }, make("span", { textContent: end(input.lower) }), make("span", { textContent: end(input.upper) })));
    slider.addEventListener("input", () => { values[i] = settled(Number(slider.value), input); field.value = values[i]; changed(); });
    field.addEventListener("input", () => {
      const value = field.value.trim() === "" ? NaN : Number(field.value);
      field.setAttribute("aria-invalid", Number.isFinite(value) ? "false" : "true");
      if (!Number.isFinite(value)) return;
      values[i] = value;
      slider.value = value;
      changed();
    });
    refreshers.push(() => { field.value = values[i]; slider.value = values[i]; });
    profiles.push({ i, curve, dot });
    return row;
  };

  const addChoice = (choice) => {
    // One level may have no input of its own: it means that all the others are 0.
    const known = choice.inputs.filter((i) => i !== null);
    const base = choice.inputs.indexOf(null);
    const id = `in-${known[0]}`;
    const select = make("select", { id });
    choice.levels.forEach((level, k) => select.append(make("option", { value: k, textContent: level })));
    if (base < 0) select.append(make("option", { value: -1, textContent: "(none of these)" }));
    select.addEventListener("change", () => {
      choice.inputs.forEach((i, k) => { if (i !== null) values[i] = Number(select.value) === k ? 1 : 0; });
      changed();
    });
    refreshers.push(() => {
      const on = choice.inputs.findIndex((i) => i !== null && values[i] === 1);
      select.value = on < 0 ? base : on;
    });
    return make("div", { className: "input" }, make("label", { htmlFor: id }, ...breakable(choice.name)), select);
  };

  const drawn = new Set();
  const weak = [];
  for (const i of model.order) {
    const choice = levelOf.get(i);
    if (choice && drawn.has(choice)) continue;
    if (choice) drawn.add(choice);
    // Inputs that hardly matter are shown on demand.
    const where = model.weak.includes(i) && controls.length ? weak : controls;
    where.push(choice ? addChoice(choice) : addSlider(i));
  }
  if (weak.length) {
    const title = weak.length === 1 ? "1 input that hardly matters" : `${weak.length} inputs that hardly matter`;
    controls.push(make("details", {}, make("summary", { textContent: title }), ...weak));
  }

  const output = make("output", { id: "prediction" });
  output.setAttribute("for", model.inputs.map((_, i) => `in-${i}`).join(" "));
  output.setAttribute("aria-label", `Predicted ${model.target}`);
  const beyond = make("p", { className: "beyond", hidden: true });
  beyond.setAttribute("role", "status");
  const average = link ? `The average of ${model.scale} is` : "The average is";
  const sure = (sum) => {
    if (model.half_width === null) return "";
    if (!link) return ` 90\u00a0% of new rows are within ±\u00a0${number(model.half_width, 3)}.`;
    const [low, high] = [-1, 1].map((side) => number(inverse(sum + side * model.half_width), 3));
    return ` 90\u00a0% of new rows like this one are between ${low} and ${high}.`;
  };
  const about = make("p", { className: "note" });

  // Parts in order of how much they vary over the rows; the weak ones are shown on demand.
  const order = adds.sets.map((_, k) => k).sort((a, b) => adds.deviations[b] - adds.deviations[a]);
  const reach = 2.5 * Math.max(...adds.deviations, 1e-300);
  const bars = new Map();
  const addsTable = (places, caption) => {
    const body = make("tbody");
    for (const k of places) {
      const swing = make("i");
      const cell = make("td");
      bars.set(k, { swing, cell });
      const head = make("th", { scope: "row" }, ...breakable(nameOf(adds.sets[k])));
      body.append(make("tr", {}, head, make("td", {}, make("span", { className: "swing" }, swing)), cell));
    }
    const titles = make("tr", {}, make("th", { scope: "col", textContent: adds.kind === "components" ? "Component" : "Term" }), make("th", { scope: "col", textContent: "Below or above average" }), make("th", { scope: "col", textContent: link ? `Adds to ${model.scale}` : "Adds" }));
    return make("table", { className: "adds" }, make("caption", { className: "hidden", textContent: caption }), make("thead", {}, titles), body);
  };
  const first = 12;
  const list = make("div", {}, addsTable(order.slice(0, first), "What each part adds"));
  if (order.length > first) {
    list.append(make("details", {}, make("summary", { textContent: `${order.length - first} weaker ${adds.kind}` }), addsTable(order.slice(first), "What each weaker part adds")));
  }

  const reset = make("button", { type: "button", className: "reset", textContent: "Reset to typical values" });
  const median = () => {
    model.inputs.forEach((input, i) => { values[i] = settled(input.start, input); });
    refreshers.forEach((set) => set());
    refresh();
  };
  reset.addEventListener("click", median);

  const [lowest, highest] = model.range;
  const room = 0.08 * (highest - lowest) || 1;
  const tall = (value) => 34 * (1 - (value - lowest + room) / (highest - lowest + 2 * room));
  const inBox = (value) => Math.max(1, Math.min(33, tall(value)));
  const points = 48;

  function refresh() {
    const { x, sum: total, prediction } = evaluate();
    about.textContent = `${average} ${number(adds.baseline)}.${sure(total)}`;
    output.dataset.value = String(prediction);
    output.textContent = number(prediction, 5);
    parts(x).forEach((gap, k) => {
      const { swing, cell } = bars.get(k);
      const share = 50 * Math.min(Math.abs(gap) / reach, 1);
      swing.style.width = `${share}%`;
      swing.style.left = gap < 0 ? `${50 - share}%` : "50%";
      swing.className = gap < 0 ? "less" : "";
      cell.dataset.value = String(gap);
      cell.textContent = (gap > 0 ? "+" : "") + inSpan(gap, reach);
    });
    const outside = model.inputs.filter((input, i) => values[i] < input.lower || values[i] > input.upper);
    beyond.hidden = outside.length === 0;
    const ranges = outside.map((input) => `${input.name} ranged from ${number(input.lower)} to ${number(input.upper)}`);
    beyond.textContent = outside.length ? `Extrapolation: ${ranges.join("; ")}. No row supports this prediction.` : "";
    for (const { i, curve, dot } of profiles) {
      const input = model.inputs[i];
      let rest = total;
      for (const one of users[i]) rest -= feature(one, x);
      const own = x[i];
      const steps = [];
      for (let k = 0; k <= points; k += 1) {
        x[i] = mapped(input.lower + ((input.upper - input.lower) * k) / points, input);
        let sum = rest;
        for (const one of users[i]) sum += feature(one, x);
        steps.push(`${((100 * k) / points).toFixed(1)} ${inBox(predicted(sum)).toFixed(1)}`);
      }
      x[i] = own;
      curve.setAttribute("d", `M${steps.join("L")}`);
      const share = input.upper > input.lower ? (values[i] - input.lower) / (input.upper - input.lower) : 0.5;
      dot.setAttribute("x", `${(100 * Math.max(0, Math.min(1, share))).toFixed(2)}%`);
      dot.setAttribute("y", `${((100 * inBox(prediction)) / 34).toFixed(2)}%`);
    }
  }

  panel.replaceChildren(make("div", { className: "panel" },
    make("div", {}, ...controls, reset),
    make("div", { className: "result" }, make("div", { className: "predicted" }, make("p", { textContent: `Predicted ${model.target}` }), output, about, beyond), list)));
  median();
})();
