//! Lays out tables: columns are as wide as their content, and cells that do not fit on the screen move to a second line.

use crate::{
    style::{Screen, TextStyle},
    terminal_text::{display_width, truncate_path},
};

/// The number of blanks between two columns.
const COLUMN_GAP: usize = 2;
/// The indent of the second line of a row.
const TAIL_INDENT: usize = 2;
/// The last column is cut to the screen if this much of it stays; otherwise it moves to the second line.
const MIN_LAST_COLUMNS: usize = 24;

/// A column: its title, and how its cells are introduced where no title is above them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TextColumn {
    pub title: &'static str,
    /// A word before the cell on a second line; empty if the cell is clear without one.
    pub tail_label: &'static str,
}

impl TextColumn {
    pub(crate) const fn new(title: &'static str) -> TextColumn {
        TextColumn { title, tail_label: "" }
    }
}

/// A cell: one line of clean text and its style.
#[derive(Clone, Debug)]
pub(crate) struct TextCell {
    pub text: String,
    pub style: TextStyle,
}

impl From<String> for TextCell {
    fn from(text: String) -> TextCell {
        TextCell { text, style: TextStyle::Plain }
    }
}

/// Renders a table with a line of titles. Every row has a cell for each column; the text of cells is already clean.
pub(crate) fn render_table(columns: &[TextColumn], rows: &[Vec<TextCell>], screen: &Screen) -> String {
    let column_width = |(column_index, column): (usize, &TextColumn)| {
        let cell_widths = rows.iter().map(|row| display_width(&row[column_index].text));
        cell_widths.max().unwrap_or_default().max(display_width(column.title))
    };
    let column_widths: Vec<usize> = columns.iter().enumerate().map(column_width).collect();
    let shown_count = count_fitting_columns(&column_widths, screen);
    let title_cells: Vec<TextCell> =
        columns.iter().map(|column| TextCell { text: column.title.to_string(), style: TextStyle::Bold }).collect();
    let mut rendered = render_line(&title_cells[..shown_count], &column_widths, screen);
    for row in rows {
        rendered.push_str(&render_line(&row[..shown_count], &column_widths, screen));
        rendered.push_str(&render_tail(&columns[shown_count..], &row[shown_count..], screen));
    }
    rendered
}

/// Counts the columns that fit on one line, at least one.
fn count_fitting_columns(column_widths: &[usize], screen: &Screen) -> usize {
    let mut line_columns = 0;
    for (column_index, column_width) in column_widths.iter().enumerate() {
        let is_last = column_index + 1 == column_widths.len();
        let needed_columns = if is_last { (*column_width).min(MIN_LAST_COLUMNS) } else { *column_width };
        if column_index > 0 && !screen.fits_line(line_columns + needed_columns) {
            return column_index;
        }
        line_columns += column_width + COLUMN_GAP;
    }
    column_widths.len()
}

/// Renders the cells of one line. The last one is cut if it is too wide.
fn render_line(cells: &[TextCell], column_widths: &[usize], screen: &Screen) -> String {
    let mut line_text = String::new();
    let mut used_columns = 0;
    for (cell_index, (cell, column_width)) in cells.iter().zip(column_widths).enumerate() {
        let cell_text = match cell_index + 1 == column_widths.len() {
            true => truncate_path(&cell.text, screen.columns_behind(used_columns)),
            false => cell.text.clone(),
        };
        // Blanks are added behind the painted text, because colour codes have no width.
        let padding = (column_width + COLUMN_GAP).saturating_sub(display_width(&cell_text));
        line_text.push_str(&screen.paint(cell.style, &cell_text));
        line_text.push_str(&" ".repeat(padding));
        used_columns += column_width + COLUMN_GAP;
    }
    format!("{}\n", line_text.trim_end())
}

/// Renders the cells that did not fit: joined, indented and wrapped.
fn render_tail(columns: &[TextColumn], cells: &[TextCell], screen: &Screen) -> String {
    let labelled_text = |(column, cell): (&TextColumn, &TextCell)| {
        let cell_text = truncate_path(cell.text.trim(), screen.columns_behind(TAIL_INDENT));
        match (cell_text.is_empty(), column.tail_label) {
            (true, _) => None,
            (false, "") => Some(cell_text),
            (false, tail_label) => Some(format!("{tail_label} {cell_text}")),
        }
    };
    let tail_texts: Vec<String> = columns.iter().zip(cells).filter_map(labelled_text).collect();
    if tail_texts.is_empty() {
        return String::new();
    }
    format!("{}\n", screen.wrap_parts(TAIL_INDENT, TAIL_INDENT, &tail_texts.join(" · ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLUMNS: [TextColumn; 3] =
        [TextColumn::new("RUN"), TextColumn { title: "USAGE", tail_label: "used" }, TextColumn::new("SUBJECT")];

    fn render_at(max_columns: Option<usize>) -> String {
        let rows = [["prd-k3f9", "47k tokens, $0.35", "docs/planning/artifacts/of/the/prd.md"], ["a-x2m1", "", "a.md"]];
        let cell_rows = rows.map(|row| row.map(|text| TextCell::from(text.to_string())).to_vec());
        render_table(&COLUMNS, &cell_rows, &Screen { max_columns, ..Screen::default() })
    }

    #[test]
    fn cells_that_do_not_fit_are_cut_or_moved_to_a_second_line() {
        insta::assert_snapshot!(render_at(None), @r"
        RUN       USAGE              SUBJECT
        prd-k3f9  47k tokens, $0.35  docs/planning/artifacts/of/the/prd.md
        a-x2m1                       a.md
        ");
        insta::assert_snapshot!(render_at(Some(60)), @r"
        RUN       USAGE              SUBJECT
        prd-k3f9  47k tokens, $0.35  …/artifacts/of/the/prd.md
        a-x2m1                       a.md
        ");
        insta::assert_snapshot!(render_at(Some(50)), @r"
        RUN       USAGE
        prd-k3f9  47k tokens, $0.35
          docs/planning/artifacts/of/the/prd.md
        a-x2m1
          a.md
        ");
        insta::assert_snapshot!(render_at(Some(25)), @r"
        RUN
        prd-k3f9
          used 47k tokens, $0.35
          …/of/the/prd.md
        a-x2m1
          a.md
        ");
    }
}
