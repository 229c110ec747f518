"""What a notebook shows of the objects of the package."""

from html.parser import HTMLParser

from conftest import numbers

import tilewright as tw


class Shown(HTMLParser):
    """The text of a piece of HTML, whose tags must be closed in order."""

    def __init__(self, html):
        super().__init__()
        self.open, self.text = [], ""
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


def test_functions_show_their_signature_and_their_last_schedule(lib):
    scale = tw.define("def scale(float(N) x, float a) -> (y) { y(i) = a * x(i) }")
    before = Shown(scale._repr_html_()).text
    assert "scale(float32(N) x, float32 a) -> (float32(N) y)" in before and "none yet" in before
    scale(numbers(100), 2.0)
    after = Shown(scale._repr_html_()).text
    assert "kernels1" in after and scale.schedule in after
    assert all(function.signature in Shown(lib._repr_html_()).text for function in lib)


def test_kernels_show_what_they_are_for(lib):
    kernel = lib.mm.compile(numbers(4, 3), numbers(3, 2))
    shown = Shown(kernel._repr_html_()).text
    for part in (kernel.signature, "M = 4, K = 3, N = 2", "cpu", "default schedule", kernel.schedule):
        assert part in shown
    assert kernel.signature in repr(kernel)


def test_searches_show_their_figures():
    found = tw.Tuned("f", 1e-6, 2e-6, "split y.i -> a, b:4", 7, 1.5, [], 'kept in "<a&b>.sqlite"')
    html = found._repr_html_()
    assert "<a&b>" not in html
    for part in ("1 us", "2 us", "2.00", "7 in 1.5 s", "split y.i -> a, b:4", 'kept in "<a&b>.sqlite"'):
        assert part in Shown(html).text
