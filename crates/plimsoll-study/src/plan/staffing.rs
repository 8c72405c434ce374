//! Between what was sized: how many replicas less load needs, by the square-root rule.

/// What so many replicas carry: as much each, less what a small crew loses to chance. With `n` replicas that is `a n - b sqrt(n)`, through what one carries alone and
/// what the sized number carries.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Staffing {
    each: f64,
    chance: f64,
    /// A number that was sized, and the load that it was sized for.
    sized: (u32, f64),
}

impl Staffing {
    /// The sized number carries the load 1; one alone carries `one` of it, where that is known.
    pub(crate) fn new(sized: u32, one: Option<f64>) -> Self {
        let n = f64::from(sized.max(1));
        let root = n.sqrt();
        let one = one.filter(|one| *one > 0.0).unwrap_or(1.0 / n);
        // Where there is one, or one alone carries more of it than its share, no crew is better than its parts.
        let chance = match sized > 1 {
            true => ((1.0 - n * one) / (n - root)).max(0.0),
            false => 0.0,
        };
        let each = if sized > 1 { (1.0 + chance * root) / n } else { one.max(1.0) };
        Self { each, chance, sized: (sized.max(1), 1.0) }
    }

    /// What so many carry, as a share of the load that was sized for.
    pub(crate) fn carries(&self, n: u32) -> f64 {
        let n = f64::from(n);
        (self.each * n - self.chance * n.sqrt()).max(0.0)
    }

    /// The fewest that carry a share of the load that was sized for.
    pub(crate) fn need(&self, load: f64) -> u32 {
        if load <= 0.0 {
            return 0;
        }
        // What was sized is not argued with.
        let enough = |n: u32| self.carries(n) >= load * (1.0 - 1e-9);
        let about = ((load / self.each).floor() as u32).max(1);
        let mut n = about;
        while !enough(n) {
            n += 1;
        }
        if load <= self.sized.1 { n.min(self.sized.0) } else { n }
    }
}

#[cfg(test)]
mod tests {
    use super::Staffing;

    #[test]
    fn goes_through_what_was_sized_and_what_one_carries() {
        let crew = Staffing::new(16, Some(0.05));
        assert!((crew.carries(16) - 1.0).abs() < 1e-12);
        assert!((crew.carries(1) - 0.05).abs() < 1e-12);
        assert_eq!(crew.need(1.0), 16);
        // A quarter of the load takes more than a quarter of the crew.
        assert_eq!(crew.need(0.25), 5);
        assert_eq!(crew.need(0.0), 0);
    }

    #[test]
    fn one_that_is_enough_is_enough() {
        let alone = Staffing::new(1, Some(3.0));
        assert_eq!((alone.need(1.0), alone.need(2.9), alone.need(3.1)), (1, 1, 2));
    }

    #[test]
    fn more_load_never_needs_fewer() {
        for (n, one) in [(2, 0.3), (7, 0.1), (40, 0.01), (40, 0.2)] {
            let crew = Staffing::new(n, Some(one));
            let mut before = 0;
            for load in 0..300 {
                let need = crew.need(f64::from(load) / 100.0);
                assert!(need >= before, "{n} {one}: {need} after {before}");
                before = need;
            }
        }
    }
}
