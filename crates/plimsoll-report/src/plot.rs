//! Plots for a terminal, in letters of braille: each has two dots across and four up.

use crate::forecast::number;

/// A plot that is being drawn.
pub(crate) struct Plot {
    /// Letters across and up.
    size: (usize, usize),
    x: (f64, f64),
    y: (f64, f64),
    letters: Vec<u8>,
}

/// The bits of a letter, by column and by row from the top.
const BITS: [[u8; 4]; 2] = [[0x01, 0x02, 0x04, 0x40], [0x08, 0x10, 0x20, 0x80]];

impl Plot {
    /// An empty one, from the least to the greatest of each axis.
    pub(crate) fn new(size: (usize, usize), x: (f64, f64), y: (f64, f64)) -> Self {
        // An axis without a length has one.
        let long = |(low, high): (f64, f64)| (low, if high > low { high } else { low + 1.0 });
        Self { size, x: long(x), y: long(y), letters: vec![0; size.0 * size.1] }
    }

    /// Where a point is, in dots from the top left.
    fn place(&self, (x, y): (f64, f64)) -> (f64, f64) {
        let share = |value: f64, (low, high): (f64, f64)| (value - low) / (high - low);
        let (wide, high) = (2.0 * self.size.0 as f64 - 1.0, 4.0 * self.size.1 as f64 - 1.0);
        (share(x, self.x) * wide, (1.0 - share(y, self.y)) * high)
    }

    fn set(&mut self, (x, y): (f64, f64)) {
        // What is no number or outside is not drawn.
        if !(x > -0.5 && y > -0.5) {
            return;
        }
        let (x, y) = (x.round() as usize, y.round() as usize);
        if x / 2 < self.size.0
            && let Some(letter) = self.letters.get_mut(y / 4 * self.size.0 + x / 2)
        {
            *letter |= BITS[x % 2][y % 4];
        }
    }

    /// Single points.
    pub(crate) fn dots(mut self, points: &[(f64, f64)]) -> Self {
        points.iter().for_each(|point| self.set(self.place(*point)));
        self
    }

    /// A line through points.
    pub(crate) fn line(mut self, points: &[(f64, f64)]) -> Self {
        for pair in points.windows(2) {
            let (from, to) = (self.place(pair[0]), self.place(pair[1]));
            let steps = (to.0 - from.0).abs().max((to.1 - from.1).abs()).ceil().clamp(1.0, 1e4);
            for i in 0..=steps as u32 {
                let share = f64::from(i) / steps;
                self.set((from.0 + share * (to.0 - from.0), from.1 + share * (to.1 - from.1)));
            }
        }
        self
    }

    /// Rows, with the ends of both axes.
    pub(crate) fn text(&self) -> String {
        let end = |value: f64| {
            let sign = if value < 0.0 { "-" } else { "" };
            if value == 0.0 { "0".to_owned() } else { format!("{sign}{}", number(value.abs())) }
        };
        let (low, high) = (end(self.y.0), end(self.y.1));
        let wide = low.len().max(high.len());
        let mut out = String::new();
        for (i, row) in self.letters.chunks(self.size.0).enumerate() {
            let letter = |bits: &u8| match bits {
                0 => ' ',
                bits => char::from_u32(0x2800 + u32::from(*bits)).unwrap_or(' '),
            };
            let drawn: String = row.iter().map(letter).collect();
            let (label, axis) = if i == 0 { (high.as_str(), '┤') } else { ("", '│') };
            out.push_str(&format!("{label:>wide$} {axis}{}\n", drawn.trim_end()));
        }
        let (left, right) = (end(self.x.0), end(self.x.1));
        let rule = "─".repeat(self.size.0);
        let across = self.size.0.saturating_sub(left.len());
        out.push_str(&format!("{low:>wide$} ┼{rule}\n"));
        out.push_str(&format!("{:wide$}  {left}{right:>across$}\n", ""));
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_and_dots_are_where_they_belong() {
        let plot = Plot::new((8, 2), (0.0, 15.0), (0.0, 1400.0))
            .line(&[(0.0, 0.0), (15.0, 1400.0), (f64::NAN, 0.0)])
            .dots(&[(0.0, 1400.0), (99.0, 0.0)]);
        assert_eq!(plot.text(), "1,400 ┤⠁   ⣀⠤⠒⠉\n      │⣀⠤⠒⠉\n    0 ┼────────\n       0   15.0\n");
    }
}
