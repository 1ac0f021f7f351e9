// Reads the block from report/page/network_data.py: base64 → bytes → typed arrays by name.
"use strict";

const SgData = (() => {
  const KINDS = {
    f8: Float64Array, f4: Float32Array, u4: Uint32Array, i2: Int16Array, u2: Uint16Array, u1: Uint8Array,
  };

  function bytesOf(base64) {
    const text = atob(base64.trim());
    const bytes = new Uint8Array(text.length);
    for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
    return bytes;
  }

  async function inflate(bytes) {
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    return new Response(stream).arrayBuffer();
  }

  async function unpack(base64, places) {
    const buffer = await inflate(bytesOf(base64));
    const arrays = {};
    for (const [name, { kind, shape, at }] of Object.entries(places)) {
      const count = shape.reduce((product, size) => product * size, 1);
      arrays[name] = new KINDS[kind](buffer, at, count);
      arrays[name].shape = shape;
    }
    return arrays;
  }

  return { unpack };
})();
