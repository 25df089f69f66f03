//! The sans-IO trimming switch: classify, route, queue, trim, schedule.
