//! Prices and a day that others published.

mod published_day;
mod published_prices;
