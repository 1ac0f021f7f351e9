// Images and attention maps on small canvases.
"use strict";

const SgPictures = (() => {
  function put(canvas, width, height, colourAt) {
    canvas.width = width;
    canvas.height = height;
    const context = canvas.getContext("2d", { willReadFrequently: true });
    const data = context.createImageData(width, height);
    const pixels = new Uint32Array(data.data.buffer);
    for (let i = 0; i < width * height; i++) pixels[i] = colourAt(i);
    context.putImageData(data, 0, 0);
  }

  // Pixels (C, H, W) from 0 to 1: in colour with three channels, otherwise their mean in grey.
  function image(canvas, pixels, [channels, height, width]) {
    const n = height * width, level = (value) => Math.round(255 * Math.max(0, Math.min(1, value)));
    put(canvas, width, height, (i) => {
      let r, g, b;
      if (channels === 3) [r, g, b] = [level(pixels[i]), level(pixels[n + i]), level(pixels[2 * n + i])];
      else {
        let sum = 0;
        for (let c = 0; c < channels; c++) sum += pixels[c * n + i];
        r = g = b = level(sum / channels);
      }
      return (0xff000000 | (b << 16) | (g << 8) | r) >>> 0;
    });
  }

  // The channels of a map (C, H, W) summed, as shown.
  function summed(map, [channels, height, width]) {
    const n = height * width, sum = new Float64Array(n);
    for (let c = 0; c < channels; c++) for (let i = 0; i < n; i++) sum[i] += map[c * n + i];
    return sum;
  }

  // Maps (H, W) with one scale around 0 for all of them; returns the end of the scale.
  function maps(canvases, drawn, [, height, width], table) {
    let top = 0;
    for (const map of drawn) for (const value of map) top = Math.max(top, Math.abs(value));
    drawn.forEach((map, k) => {
      put(canvases[k], width, height, (i) => SgPaint.shade(table, top > 0 ? 0.5 + (0.5 * map[i]) / top : 0.5));
    });
    return top;
  }

  // The outline of pixels with a weight of at least one half, on canvases that show such pixels; they are enlarged.
  function outline(canvases, weights, [, height, width]) {
    const factor = 8, isOn = (x, y) => x >= 0 && y >= 0 && x < width && y < height && weights[y * width + x] >= 0.5;
    for (const canvas of canvases) {
      const small = document.createElement("canvas");
      small.width = width;
      small.height = height;
      small.getContext("2d").drawImage(canvas, 0, 0);
      canvas.width = factor * width;
      canvas.height = factor * height;
      const context = canvas.getContext("2d", { willReadFrequently: true });
      context.imageSmoothingEnabled = false;
      context.drawImage(small, 0, 0, factor * width, factor * height);
      context.fillStyle = "#0a9d4e";
      for (let y = 0; y <= height; y++) {
        for (let x = 0; x <= width; x++) {
          if (isOn(x, y) !== isOn(x, y - 1)) context.fillRect(factor * x, factor * y - 1, factor, 3);
          if (isOn(x, y) !== isOn(x - 1, y)) context.fillRect(factor * x - 1, factor * y, 3, factor);
        }
      }
    }
  }

  function scale(canvas, table) {
    put(canvas, 128, 1, (i) => SgPaint.shade(table, i / 127));
  }

  return { image, maps, summed, scale, outline };
})();
