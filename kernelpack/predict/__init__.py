"""What a launch should cost on a device, told by its own PTX; nothing is computed."""
