//! Which clusters do placements select? Open Cluster Management's Placements, decided and published.
