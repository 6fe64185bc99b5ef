//! The columns of the table of several runs, for each width of the screen.

use super::multi_board::RunFigures;
use crate::{kind_reporter::ItemCounts, phrases};

/// A figure that a row shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FigureColumn {
    Found,
    Fixed,
    Open,
    Tokens,
    /// What was paid; blank as long as no run has a cost.
    Cost,
    /// What was paid or, as long as no run has a cost, the tokens.
    Spent,
    Time,
}

impl FigureColumn {
    pub(super) fn heading(self, has_cost: bool) -> &'static str {
        match self {
            FigureColumn::Found => "found",
            FigureColumn::Fixed => "fixed",
            FigureColumn::Open => "open",
            FigureColumn::Cost if !has_cost => "",
            FigureColumn::Spent if !has_cost => "tokens",
            FigureColumn::Cost | FigureColumn::Spent => "cost",
            FigureColumn::Tokens => "tokens",
            FigureColumn::Time => "time",
        }
    }

    pub(super) fn column_count(self) -> usize {
        match self {
            FigureColumn::Found | FigureColumn::Fixed | FigureColumn::Open => 5,
            FigureColumn::Tokens => 6,
            // `$123.45` and `1:02:03`
            FigureColumn::Cost | FigureColumn::Spent | FigureColumn::Time => 7,
        }
    }

    pub(super) fn format_figure(self, figures: &RunFigures, has_cost: bool) -> String {
        let format_items = |count: fn(ItemCounts) -> u32| figures.items.map(|items| count(items).to_string());
        match self {
            FigureColumn::Found => format_items(|items| items.found).unwrap_or_default(),
            FigureColumn::Fixed => format_items(|items| items.fixed).unwrap_or_default(),
            FigureColumn::Open => format_items(|items| items.open).unwrap_or_default(),
            FigureColumn::Cost if !has_cost => String::new(),
            FigureColumn::Spent if !has_cost => phrases::abbreviate_count(figures.tokens),
            FigureColumn::Cost | FigureColumn::Spent => phrases::format_cost(figures.paid_cost),
            FigureColumn::Tokens => phrases::abbreviate_count(figures.tokens),
            FigureColumn::Time => phrases::format_duration(figures.elapsed_ms),
        }
    }
}

/// The columns for a width of the screen.
pub(super) struct TableColumns {
    /// The room for what a run is doing.
    pub stage_columns: usize,
    pub figures: &'static [FigureColumn],
    pub gap: usize,
}

const WIDE_TABLE: TableColumns = TableColumns {
    stage_columns: 35,
    figures: &[
        FigureColumn::Found,
        FigureColumn::Fixed,
        FigureColumn::Open,
        FigureColumn::Tokens,
        FigureColumn::Cost,
        FigureColumn::Time,
    ],
    gap: 2,
};
const MEDIUM_TABLE: TableColumns = TableColumns {
    stage_columns: 23,
    figures: &[FigureColumn::Found, FigureColumn::Fixed, FigureColumn::Open, FigureColumn::Spent, FigureColumn::Time],
    gap: 1,
};
const NARROW_TABLE: TableColumns =
    TableColumns { stage_columns: 19, figures: &[FigureColumn::Fixed, FigureColumn::Open, FigureColumn::Time], gap: 1 };

impl TableColumns {
    /// The columns for a line of this width.
    pub(super) fn for_width(columns: usize) -> &'static TableColumns {
        match columns {
            108.. => &WIDE_TABLE,
            74.. => &MEDIUM_TABLE,
            _ => &NARROW_TABLE,
        }
    }
}
