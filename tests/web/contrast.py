"""Text that is hard to read, found in the browser: the contrast of WCAG 2, from the styles as they are computed."""

# The least ratio is 4.5, and 3 for large text. A ground that lets the one below through is looked for further up. Texts in
# the charts stand on the ground of the page.
TOO_PALE = """() => {
  const parse = (text) => {
    const found = text.match(/[\\d.]+/g).map(Number);
    return { rgb: found.slice(0, 3), alpha: found.length > 3 ? found[3] : 1 };
  };
  const light = (rgb) => {
    const [r, g, b] = rgb.map((part) => part / 255).map((part) => part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ground = (one) => {
    for (let up = one; up; up = up.parentElement) {
      const { rgb, alpha } = parse(getComputedStyle(up).backgroundColor);
      if (alpha === 1) return rgb;
    }
    return matchMedia('(prefers-color-scheme: dark)').matches ? [0, 0, 0] : [255, 255, 255];
  };
  const pale = [];
  let looked = 0;
  for (const one of document.querySelectorAll('body *')) {
    const own = [...one.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
    const box = one.getBoundingClientRect();
    const style = getComputedStyle(one);
    if (!own || !box.width || !box.height || style.visibility === 'hidden' || one.disabled || box.right < 0) continue;
    const drawn = one.closest('svg');
    if (drawn && (Number(style.opacity) === 0 || Number(style.fillOpacity) === 0 || one.closest('[style*="opacity: 0.5"]'))) continue;
    looked += 1;
    const ink = parse(drawn ? style.fill : style.color);
    const [a, b] = [light(ink.rgb), light(ground(one))].sort((x, y) => y - x);
    const ratio = (a + 0.05) / (b + 0.05);
    const large = parseFloat(style.fontSize) >= 24 || (parseFloat(style.fontSize) >= 18.66 && Number(style.fontWeight) >= 700);
    if (ratio < (large ? 3 : 4.5)) pale.push(`${one.textContent.trim().slice(0, 40)}: ${ratio.toFixed(2)}`);
  }
  return { looked, pale };
}"""
