"""Draws Vega-Lite specifications with vl-convert, without a network.

    render_charts.py FOLDER NAME...

reads FOLDER/NAME.vl.json and writes FOLDER/NAME.svg and FOLDER/NAME.pdf.
"""

import json
import pathlib
import sys


def main(folder, names):
    try:
        import vl_convert
    except ImportError as error:
        sys.exit(f"vl-convert is missing ({error}); scripts/setup installs it")
    for name in names:
        path = pathlib.Path(folder) / name
        spec = json.loads(path.with_name(name + ".vl.json").read_text(encoding="utf-8"))
        # The data is inside the specification: no address is allowed.
        svg = vl_convert.vegalite_to_svg(spec, allowed_base_urls=[])
        path.with_name(name + ".svg").write_text(svg, encoding="utf-8")
        path.with_name(name + ".pdf").write_bytes(vl_convert.svg_to_pdf(svg))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
