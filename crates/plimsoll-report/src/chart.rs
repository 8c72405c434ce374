//! The chart kit: charts as data, drawn as SVG that needs no script.
//!
//! Each thing has one colour in every chart, axes have units, uncertainty is a band, and lines are named where they are. A chart has a sentence with its numbers for whoever
//! does not see it.

mod draw;
pub(crate) mod hard;
mod scale;
pub(crate) mod service;
mod svg;

use serde_json::{Value, json};

pub(crate) use self::draw::{Bar, Beside, Draw, Panel};
pub(crate) use self::scale::moment;

/// The look of charts, in light, dark and print; the colours that stand for things are here.
pub const STYLE: &str = include_str!("chart/chart.css");

/// The script that shows values where a chart is pointed at.
pub const SCRIPT: &str = include_str!("chart/chart.js");

/// A chart: what it is called, what it says, and what it shows.
#[derive(Clone)]
pub struct Chart {
    /// Names it in a page.
    pub id: String,
    /// Above it.
    pub title: String,
    /// What it shows, in a sentence with the numbers.
    pub alt: String,
    draw: Draw,
}

impl Chart {
    /// What a page shows of it: `id`, `title`, `alt`, and `html`, the legend and the drawing.
    pub fn json(&self) -> Value {
        json!({
            "id": self.id, "title": self.title, "alt": self.alt, "html": self.html().into_string(),
        })
    }
}

#[cfg(test)]
impl Chart {
    /// Where level lines are.
    pub(crate) fn levels(&self) -> Vec<f64> {
        self.draw.marks.iter().filter(|mark| mark.x.is_none()).filter_map(|mark| mark.y).collect()
    }

    /// What a series shows: how often it is drawn, its places and its values.
    pub(crate) fn series(&self, name: &str) -> Vec<(String, String)> {
        let html = self.html().into_string();
        let paths = html
            .split("<path ")
            .skip(1)
            .filter(|path| path.contains(&format!("data-name=\"{name}\"")));
        let of = |path: &str, attribute: &str| {
            let rest = path.split_once(&format!("{attribute}=\"")).map_or("", |(_, rest)| rest);
            rest.split('"').next().unwrap_or("").to_owned()
        };
        paths.map(|path| (of(path, "data-at"), of(path, "data-says"))).collect()
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
    /// The class that [`STYLE`] has its colour under.
    fn class(self) -> &'static str {
        match self {
            Self::Today => "i-today",
            Self::Planned => "i-planned",
            Self::Demand => "i-demand",
            Self::Line => "i-line",
            Self::Danger => "i-danger",
            Self::Good => "i-good",
            Self::Other => "i-other",
            Self::Muted => "i-muted",
        }
    }
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

    /// The colour that a rule of the style has for a name.
    fn colour(name: &str, of: &str) -> [u8; 3] {
        let (_, rest) =
            STYLE.split_once(name).and_then(|(_, rest)| rest.split_once(of)).expect(name);
        let hex = rest.trim_start().get(1..7).expect("six digits");
        [0, 2, 4].map(|i| u8::from_str_radix(&hex[i..i + 2], 16).expect("hexadecimal"))
    }

    #[test]
    fn every_colour_is_seen_on_both_backgrounds() {
        let inks = [
            Ink::Today,
            Ink::Planned,
            Ink::Demand,
            Ink::Line,
            Ink::Danger,
            Ink::Good,
            Ink::Other,
            Ink::Muted,
        ];
        let papers = [colour(":root", "--paper:"), colour("dark", "--paper:")];
        assert!(luminance(papers[0]) > 0.9 && luminance(papers[1]) < 0.1, "{papers:?}");
        for ink in inks {
            for paper in papers {
                let (a, b) =
                    (luminance(colour(&format!(".{} ", ink.class()), "--c:")), luminance(paper));
                let contrast = (a.max(b) + 0.05) / (a.min(b) + 0.05);
                assert!(contrast >= 3.0, "{ink:?} on {paper:?}: {contrast:.2}");
            }
        }
    }

    #[test]
    fn a_chart_has_its_words_and_its_numbers() {
        let points = [(1.0, 1.0), (2.0, f64::NAN), (3.0, 2.0), (4.0, 2.5)];
        let chart = Draw::new("offered, tasks/s", "good, tasks/s")
            .legend()
            .line("<b>today</b>", Ink::Today, &points)
            .band("95 in 100", Ink::Today, &[(1.0, 0.5, 1.5), (2.0, 0.5, 2.0)])
            .upright(1.5, "load line", Ink::Line)
            .done("curve", "Service curve", "Good tasks rise to \"2.5\"/s.");
        let json = chart.json();
        assert_eq!(json["alt"], "Good tasks rise to \"2.5\"/s.");
        for drawn in [json["html"].as_str().expect("markup").to_owned(), chart.picture()] {
            // A gap is a gap, and a name is no markup.
            assert!(drawn.contains("data-says=\"1.00;;2.00;2.50\""), "{drawn}");
            assert!(drawn.contains("data-says=\"0.500 to 1.50;0.500 to 2.00\""), "{drawn}");
            assert!(drawn.contains("d=\"M0 198M666.7 94L1000 42\""), "{drawn}");
            assert!(!drawn.contains("<b>") && drawn.contains("&lt;b&gt;today&lt;/b&gt;"));
            for word in
                ["offered, tasks/s", "good, tasks/s", "load line", "rise to &quot;2.5&quot;/s."]
            {
                assert!(
                    drawn.contains(&format!("{word}<")) || drawn.contains(&format!("{word}\"")),
                    "{word}: {drawn}"
                );
            }
        }
        assert_eq!(chart.picture(), chart.clone().picture());
    }

    #[test]
    fn many_points_are_thinned_and_peaks_stay() {
        let points: Vec<(f64, f64)> = (0..100_000)
            .map(|i| (f64::from(i), if i == 54_321 { 9.0 } else { f64::from(i % 2) }))
            .collect();
        let drawn = Draw::new("s", "1/s")
            .steps("rate", Ink::Demand, &points)
            .done("a", "b", "c")
            .html()
            .into_string();
        assert!(drawn.contains(";9.00;") && drawn.contains(" 54321 "));
        assert!(drawn.len() < 30_000, "{}", drawn.len());
    }
}
