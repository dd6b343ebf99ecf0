"""No two labels of a picture lie on each other, and none is cut off: labels.py PICTURE.svg...

A browser lays the texts out, with the fonts that it has; each is the box of its letters, turned as the text is.
"""
import sys

from browser import Browser
from patience import judged

# Of the size of a font, from the base line: what the letters of a label cover, without the room above and below them.
SCRIPT = """
const [svg] = arguments, UP = 0.76, DOWN = 0.2;
document.body.innerHTML = svg.slice(svg.indexOf('<svg'));
const picture = document.querySelector('svg'), view = picture.viewBox.baseVal, boxes = [];
for (const text of picture.querySelectorAll('text')) {
    const box = text.getBBox(), matrix = picture.getCTM().inverse().multiply(text.getCTM());
    const size = parseFloat(getComputedStyle(text).fontSize), base = text.getStartPositionOfChar(0).y;
    const corner = (x, y) => { const p = new DOMPoint(x, y).matrixTransform(matrix); return [p.x, p.y]; };
    boxes.push({text: text.textContent, corners: [
        corner(box.x, base - UP * size), corner(box.x + box.width, base - UP * size),
        corner(box.x + box.width, base + DOWN * size), corner(box.x, base + DOWN * size)]});
}
// Two boxes are apart if they are along the side of one of them.
const sides = ({corners: [a, b, , d]}) => [[b[0] - a[0], b[1] - a[1]], [d[0] - a[0], d[1] - a[1]]];
function apart(one, other) {
    return [...sides(one), ...sides(other)].some(([x, y]) => {
        const length = Math.hypot(x, y), along = (box) => box.corners.map((p) => (p[0] * x + p[1] * y) / length);
        const [a, b] = [along(one), along(other)];
        return Math.max(...a) <= Math.min(...b) + 0.5 || Math.max(...b) <= Math.min(...a) + 0.5;
    });
}
const wrong = [];
boxes.forEach((box, i) => {
    if (box.corners.some(([x, y]) => x < 0 || y < 0 || x > view.width || y > view.height)) wrong.push(`${box.text}: cut off`);
    for (const other of boxes.slice(0, i))
        if (!apart(box, other)) wrong.push(`${other.text} | ${box.text}`);
});
return [boxes.length, wrong];
"""


def main():
    found = False
    with Browser() as browser:
        browser.open("about:blank")
        for path in sys.argv[1:]:
            with open(path, encoding="utf-8") as file:
                labels, wrong = browser.run(SCRIPT, file.read())
            assert labels, f"{path}: no labels"
            for line in wrong:
                found = True
                print(f"{path}: {line}")
    return 1 if found else 0


with judged():
    sys.exit(main())
