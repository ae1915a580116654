"""What the frameworks' numerics share: when to look, plain numbers, the events' shapes, how often to go on."""
