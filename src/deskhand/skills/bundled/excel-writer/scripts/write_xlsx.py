"""Make a workbook of a file of JSON or CSV."""

import csv
import json
import sys
from datetime import date
from pathlib import Path

try:
    from openpyxl import Workbook
    from openpyxl.chart import BarChart, LineChart, PieChart, Reference
    from openpyxl.styles import Font, PatternFill
    from openpyxl.utils import get_column_letter
except ImportError:
    sys.exit("openpyxl is not installed: pip install 'deskhand[office]'")

CHARTS = {"bar": BarChart, "line": LineChart, "pie": PieChart}
TOTALS = {"sum": "SUM", "average": "AVERAGE", "min": "MIN", "max": "MAX", "count": "COUNTA"}
MAX_WIDTH = 60


def read_csv(path):
    """A sheet with the name of the file, whose first row is the heading."""
    with path.open(newline="", encoding="utf-8-sig") as file:
        sample = file.read(4096)
        file.seek(0)
        try:
            dialect = csv.Sniffer().sniff(sample, ",;\t|")
        except csv.Error:
            dialect = csv.excel
        heading, *rows = csv.reader(file, dialect)
    return {"sheets": [{"name": path.stem[:31], "columns": heading, "rows": rows}]}


def to_value(text):
    """A number or a date where it is one. Text that a spreadsheet would calculate stays text."""
    if not isinstance(text, str):
        return text
    for kind in (int, float, date.fromisoformat):
        try:
            value = kind(text.strip())
        except ValueError:
            continue
        if text.strip().lstrip("-")[:2].isdigit() and text.strip().startswith("0") and kind is int:
            return text  # a number with zeros before it is a name
        return value
    return text


def write_sheet(workbook, told, computes):
    columns = [each if isinstance(each, dict) else {"name": each} for each in told["columns"]]
    names = [each["name"] for each in columns]
    sheet = workbook.create_sheet(told.get("name", "Sheet"))
    sheet.append(names)
    for row in told.get("rows", []):
        if isinstance(row, dict):
            row = [row.get(name) for name in names]
        sheet.append([to_value(value) for value in row])
        if not computes:
            for cell in sheet[sheet.max_row]:
                if cell.data_type == "f":
                    cell.data_type = "s"
    last = sheet.max_row
    write_totals(sheet, names, told.get("totals", {}), last)
    for cell in sheet[1]:
        cell.font = Font(bold=True)
        cell.fill = PatternFill("solid", fgColor="E8EEF7")
    sheet.freeze_panes = "A2"
    if last > 1:
        sheet.auto_filter.ref = f"A1:{get_column_letter(len(names))}{last}"
    format_columns(sheet, columns)
    if told.get("chart"):
        add_chart(sheet, names, told["chart"], last)
    return sheet


def format_columns(sheet, columns):
    for number, column in enumerate(columns, 1):
        cells = [sheet.cell(n, number) for n in range(1, sheet.max_row + 1)]
        for cell in cells[1:]:
            if column.get("format"):
                cell.number_format = column["format"]
            elif isinstance(cell.value, date):
                cell.number_format = "yyyy-mm-dd"
        longest = max(
            len(str(cell.value or "")) for cell in cells if cell.data_type != "f" or cell.row == 1
        )
        sheet.column_dimensions[get_column_letter(number)].width = column.get(
            "width", min(longest + 3, MAX_WIDTH)
        )


def write_totals(sheet, names, totals, last):
    for name, kind in totals.items():
        if name not in names or kind not in TOTALS:
            sys.exit(f"totals: {name!r} is to be a column, and {kind!r} one of {', '.join(TOTALS)}")
        letter = get_column_letter(names.index(name) + 1)
        cell = sheet[f"{letter}{last + 1}"]
        cell.value = f"={TOTALS[kind]}({letter}2:{letter}{last})"
        cell.font = Font(bold=True)
    if totals and names[0] not in totals:
        sheet.cell(last + 1, 1, "Total").font = Font(bold=True)


def add_chart(sheet, names, told, last):
    kind = told.get("kind", "bar")
    wanted = [told.get("labels", names[0]), *told.get("values", names[1:2])]
    if kind not in CHARTS or not set(wanted) <= set(names):
        sys.exit(f"chart: kind is one of {', '.join(CHARTS)}, and labels and values are columns")
    chart = CHARTS[kind]()
    chart.title = told.get("title")
    labels, *values = (names.index(name) + 1 for name in wanted)
    for column in values:
        chart.add_data(
            Reference(sheet, min_col=column, min_row=1, max_row=last), titles_from_data=True
        )
    chart.set_categories(Reference(sheet, min_col=labels, min_row=2, max_row=last))
    sheet.add_chart(chart, f"{get_column_letter(len(names) + 2)}2")


def main():
    if len(sys.argv) != 3:
        sys.exit("usage: write_xlsx.py DATA.json|DATA.csv WORKBOOK.xlsx")
    source, target = map(Path, sys.argv[1:])
    is_csv = source.suffix.lower() == ".csv"
    told = read_csv(source) if is_csv else json.loads(source.read_text(encoding="utf-8"))
    workbook = Workbook()
    workbook.remove(workbook.active)
    for sheet in told["sheets"]:
        write_sheet(workbook, sheet, computes=not is_csv)
    workbook.save(target)
    sizes = ", ".join(f"{sheet.title} ({sheet.max_row} rows)" for sheet in workbook)
    print(f"wrote {target}: {sizes}")


if __name__ == "__main__":
    main()
