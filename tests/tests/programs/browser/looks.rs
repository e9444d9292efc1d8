//! How a page looks: at every width and in both colour schemes.

use base64::{Engine as _, prelude::BASE64_STANDARD};
use hlorank_tests::prelude::*;

use crate::browser::chromium::Browser;

/// The lowest contrast of text that a page may have, by WCAG's level AA.
const CONTRAST: f64 = 4.5;

/// Returns the lowest contrast of a text to its background, and the text.
const LOWEST_CONTRAST: &str = r"(() => {
  const parts = (color) => color.match(/[\d.]+/g).map(Number);
  const light = (color) => {
    const [r, g, b] = parts(color).map((part) => part / 255).map((c) => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = (element) => {
    const color = getComputedStyle(element).backgroundColor;
    return parts(color)[3] === 0 ? behind(element.parentElement) : color;
  };
  let lowest = [21, ''];
  for (const element of document.body.querySelectorAll('*')) {
    const text = [...element.childNodes].filter((node) => node.nodeType === 3).map((node) => node.data).join('').trim();
    if (!text || !element.checkVisibility() || ['SCRIPT', 'STYLE'].includes(element.tagName)) continue;
    const style = getComputedStyle(element);
    const [a, b] = [light(element instanceof SVGElement ? style.fill : style.color), light(behind(element))];
    const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (contrast < lowest[0]) lowest = [contrast, text];
  }
  return lowest;
})()";

impl Browser {
    /// Checks at 400 and 1,200 pixels, light and dark, that the page is no wider than the window and that its text can be
    /// read. Leaves pictures in a folder under `target`.
    pub(crate) fn check_looks(&mut self, folder: &str) {
        let folder = repository("target").join(folder);
        fs::create_dir_all(&folder).unwrap();
        for (scheme, width) in [
            ("light", 400),
            ("light", 1200),
            ("dark", 400),
            ("dark", 1200),
        ] {
            self.look(width, scheme);
            let wide = self.value("document.documentElement.scrollWidth");
            assert!(
                wide.as_u64().unwrap() <= width.into(),
                "{wide} pixels on a page of {width}"
            );
            let lowest = self.value(LOWEST_CONTRAST);
            assert!(
                lowest[0].as_f64().unwrap() >= CONTRAST,
                "{scheme}: {lowest}"
            );
            let picture = BASE64_STANDARD.decode(self.picture()).unwrap();
            fs::write(folder.join(format!("{scheme}-{width}.png")), picture).unwrap();
            let is_dark =
                self.value("getComputedStyle(document.body).color.match(/\\d+/g)[0] > 128");
            assert_eq!(
                is_dark,
                scheme == "dark",
                "the text is as bright as the scheme says"
            );
        }
    }
}
