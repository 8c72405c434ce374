//! The chart kit: pictures of numbers, drawn by plotly in a browser.
//!
//! Each thing has one colour in every chart, axes have units, uncertainty is a band, and lines are named where they are. A chart has a sentence with its numbers for whoever
//! does not see it.

mod draw;
pub(crate) mod hard;
pub(crate) mod service;

use plotly::{Plot, Trace};
use serde::Serialize;
use serde_json::{Value, json};

pub(crate) use self::draw::{At, Beside, Draw, Panel};

/// A chart: what it is called, what it says, and how it is drawn.
#[derive(Clone)]
pub struct Chart {
    /// Names it in a page.
    pub id: String,
    /// Above it.
    pub title: String,
    /// What it shows, in a sentence with the numbers.
    pub alt: String,
    plot: Plot,
}

impl Chart {
    /// What a page draws it from: `id`, `title`, `alt`, and plotly's `data` and `layout`.
    pub fn json(&self) -> Value {
        let mut plot: Value = serde_json::from_str(&self.plot.to_json()).unwrap_or_default();
        let mut part = |name: &str| plot.get_mut(name).map(Value::take).unwrap_or_default();
        json!({
            "id": self.id, "title": self.title, "alt": self.alt,
            "data": part("data"), "layout": part("layout"),
        })
    }
}

/// A colour that stands for one thing everywhere, and is seen on white and on near-black.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ink {
    /// The fleet of today.
    Today,
    /// The planned fleet.
    Planned,
    /// What is asked for.
    Demand,
    /// To what a fleet may be loaded.
    Line,
    /// What breaks.
    Danger,
    /// What holds.
    Good,
    /// Whoever knows what comes; and what is measured.
    Other,
    /// What is beside the point.
    Muted,
}

impl Ink {
    /// All of them.
    #[cfg(test)]
    pub(crate) const ALL: [Self; 8] = [
        Self::Today,
        Self::Planned,
        Self::Demand,
        Self::Line,
        Self::Danger,
        Self::Good,
        Self::Other,
        Self::Muted,
    ];

    pub(crate) fn rgb(self) -> [u8; 3] {
        match self {
            Self::Today => [0xb7, 0x79, 0x1f],
            Self::Planned => [0x2b, 0x7b, 0xd4],
            Self::Demand => [0x8f, 0x5b, 0xd6],
            Self::Line => [0xc9, 0x40, 0x8f],
            Self::Danger => [0xd6, 0x43, 0x3b],
            Self::Good => [0x2f, 0x8f, 0x4e],
            Self::Other => [0x1a, 0x8f, 0x9c],
            Self::Muted => [0x7b, 0x87, 0x94],
        }
    }

    /// As CSS has it.
    pub(crate) fn css(self) -> String {
        let [r, g, b] = self.rgb();
        format!("#{r:02x}{g:02x}{b:02x}")
    }

    /// The same, seen through.
    pub(crate) fn faint(self, share: f64) -> String {
        let [r, g, b] = self.rgb();
        format!("rgba({r},{g},{b},{share})")
    }
}

/// A kind of trace that the plotly crate has no type for: a treemap, a waterfall.
#[derive(Clone, Serialize)]
struct Raw(Value);

impl Trace for Raw {
    fn to_json(&self) -> String {
        self.0.to_string()
    }
}

/// Names as they are: plotly reads some of HTML in texts.
pub(crate) fn plain(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// WCAG 2.2's relative luminance.
    fn luminance(rgb: [u8; 3]) -> f64 {
        let [r, g, b] = rgb.map(|own| {
            let own = f64::from(own) / 255.0;
            if own <= 0.04045 { own / 12.92 } else { ((own + 0.055) / 1.055).powf(2.4) }
        });
        0.2126 * r + 0.7152 * g + 0.0722 * b
    }

    #[test]
    fn every_colour_is_seen_on_both_backgrounds() {
        let page = include_str!("page/page.css");
        // The backgrounds that the page has.
        assert!(page.contains("--paper: #ffffff") && page.contains("--paper: #11161d"));
        for ink in Ink::ALL {
            for paper in [[0xff, 0xff, 0xff], [0x11, 0x16, 0x1d]] {
                let (a, b) = (luminance(ink.rgb()), luminance(paper));
                let contrast = (a.max(b) + 0.05) / (a.min(b) + 0.05);
                assert!(contrast >= 3.0, "{ink:?} on {paper:?}: {contrast:.2}");
            }
        }
    }

    #[test]
    fn a_chart_has_its_words_and_its_numbers() {
        let chart = Draw::new("offered, tasks/s", "good, tasks/s")
            .line("<b>today</b>", Ink::Today, &[(1.0.into(), 1.0), (2.0.into(), f64::NAN)])
            .band("95 in 100", Ink::Today, &[(1.0.into(), 0.5, 1.5)])
            .upright(1.5, "load line", Ink::Line)
            .done("curve", "Service curve", "Good tasks rise to 1/s.");
        let json = chart.json();
        assert_eq!(json["alt"], "Good tasks rise to 1/s.");
        // A gap is a gap, and a name is no markup.
        assert_eq!(json["data"][0]["y"], serde_json::json!([1.0, null]));
        assert_eq!(json["data"][0]["name"], "&lt;b&gt;today&lt;/b&gt;");
        assert_eq!(json["layout"]["yaxis"]["title"]["text"], "good, tasks/s");
        assert_eq!(json["layout"]["annotations"][0]["text"], "load line");
    }
}
